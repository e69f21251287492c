package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisRecords are records in Redis.
type redisRecords struct {
	*repriseredis.Store

	client      *redis.Client
	url, prefix string
	stop        func() error // the server, if it is one of this program
}

// openRedis opens the records in the Redis of a URL.
func openRedis(ctx context.Context, url, prefix string) (*redisRecords, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: prefix})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redisRecords{store, client, url, prefix, func() error { return nil }}, nil
}

func (r *redisRecords) crash(ctx context.Context, during func(url string) error) error {
	return crashProcess(ctx, during, "-redis-url", r.url, "-prefix", r.prefix)
}

func (*redisRecords) crashed() string { return "A process was killed while it ran an order." }

func (r *redisRecords) spoil(ctx context.Context, id store.ID) error {
	key := r.prefix + "{" + string(id[:]) + "}" // the layout of an ID that does not start with a brace
	return r.client.Set(ctx, key, "of another release", time.Hour).Err()
}

func (r *redisRecords) Close() error {
	return errors.Join(r.Store.Close(), r.client.Close(), r.stop())
}

// startRedis starts a Redis that writes no files and listens on a socket in a new folder,
// and opens the records in it. Its Close ends the Redis.
func startRedis(ctx context.Context, prefix string) (*redisRecords, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "operators")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	server := exec.Command(program, //nolint:gosec,noctx // it is stopped by stop, after those who use it
		"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // the log says why it ended
	}()
	stop := func() error {
		_ = server.Process.Kill() // it may have ended
		<-ended
		return os.RemoveAll(dir)
	}
	if err := accepts(ctx, socket, ended); err != nil {
		err = errors.Join(err, stop())
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(log.Bytes()))
	}
	records, err := openRedis(ctx, "unix://"+socket, prefix)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	records.stop = stop
	return records, nil
}

// accepts waits until a server accepts connections on its socket.
func accepts(ctx context.Context, socket string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return errors.New("it ended early")
		case <-ctx.Done():
			return fmt.Errorf("it accepts no connection: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
