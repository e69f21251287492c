// Operators is an orders API with its console, for a first look at both: it leaves a
// running, a stuck, a replayed, a resolved and an unreadable record behind.
//
//	go run ./examples/operators          # serve the console, to find and resolve the stuck one
//	go run ./examples/operators -demo    # do that, print what happens, and check it
//
// It starts a Redis of its own (redis-server must be installed), or uses -redis-url.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "operators:", err)
		os.Exit(1)
	}
}

func start() error {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	redisURL := flag.String("redis-url", "", "`URL` of Redis; empty starts one that ends with the program")
	prefix := flag.String("prefix", "operators:", "prefix of the keys in Redis")
	demo := flag.Bool("demo", false, "find and resolve the stuck operation, check it, and exit")
	browse := flag.Bool("open", false, "open the console in the browser")
	dying := flag.Bool("dying", false, "be the process that is killed while it runs an operation")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *redisURL == "" {
		server, err := startRedis(ctx)
		if err != nil {
			return err
		}
		defer server.stop()
		*redisURL = server.url
	}
	options, err := redis.ParseURL(*redisURL)
	if err != nil {
		return err
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer client.Close()
	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: *prefix})
	if err != nil {
		return err
	}
	defer store.Close()

	shop := &shop{client: client, store: store, url: *redisURL, prefix: *prefix}
	switch {
	case *dying:
		return shop.serveUntilKilled(ctx, os.Stdout)
	case *demo:
		return shop.demo(ctx, os.Stdout)
	default:
		return shop.serve(ctx, os.Stdout, *addr, *browse)
	}
}

// serve serves the console until ctx ends.
func (s *shop) serve(ctx context.Context, out io.Writer, addr string, browse bool) error {
	api, err := s.listen(ctx, addr)
	if err != nil {
		return err
	}
	left, err := s.seed(ctx, api)
	if err != nil {
		return errors.Join(err, api.close(ctx))
	}
	address := api.url + "/idempotency/"
	fmt.Fprintf(out, `The console: %s

One operation is stuck: %s. A process was killed while it ran.
Its client gets 409 outcome-unknown. Try it, resolve the operation in the console, and try again:

  curl -i %s/orders -H 'Idempotency-Key: "%s"' -H 'Content-Type: application/json' -d '%s'

Ctrl-C ends everything.
`, address, left.Short(), api.url, stuckKey, order)
	if browse {
		open(ctx, address)
	}
	<-ctx.Done()
	return api.close(ctx)
}

// open shows an address in the browser, if this machine can.
func open(ctx context.Context, address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = exec.CommandContext(ctx, program, address).Run() // #nosec G204 -- one of two constants, and an address of our own
}
