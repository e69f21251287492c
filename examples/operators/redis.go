package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a Redis of this program.
type redisServer struct {
	url     string
	process *exec.Cmd
	dir     string
}

// startRedis starts a Redis on a free port that keeps nothing on disk.
func startRedis(ctx context.Context) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed; install it, or give -redis-url")
	}
	dir, err := os.MkdirTemp("", "operators")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	process := exec.Command(program, //nolint:gosec,noctx // it is stopped by stop, after those who use it
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &redisServer{url: fmt.Sprintf("redis://127.0.0.1:%d/0", port), process: process, dir: dir}
	if err := s.await(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// await waits until the server answers.
func (s *redisServer) await(ctx context.Context) error {
	options, err := redis.ParseURL(s.url)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *redisServer) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
