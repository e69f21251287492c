// Operators is an orders API with its console, for a first look at both: it leaves a
// running, a stuck, a replayed, a resolved and an unreadable record behind.
//
//	go run ./examples/operators          # serve the console, to find and resolve the stuck one
//	go run ./examples/operators -demo    # do that, print each step, and check it
//
// The records are in a file of SQLite, which the program deletes at its end, or in the
// Redis of -redis-url.
//
//run:background until 8080
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "operators:", err)
		os.Exit(1)
	}
}

func start() error {
	addr := flag.String("addr", "", "`address` to listen on (default 127.0.0.1:8080, and a free port for -demo)")
	redisURL := flag.String("redis-url", "", "`URL` of the Redis that keeps the records (default: a file)")
	file := flag.String("sqlite-file", "", "`file` of SQLite that keeps the records (default: a new one, deleted at the end)")
	prefix := flag.String("prefix", "", "prefix of the keys in Redis (default: a new one, so that records of other runs do not show)")
	demo := flag.Bool("demo", false, "find and resolve the stuck operation, check it, and exit")
	browse := flag.Bool("open", false, "open the console in the browser")
	dying := flag.Bool("dying", false, "be the process that is killed while it runs an operation")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	records, err := open(ctx, *redisURL, cmp.Or(*prefix, "operators-"+rand.Text()+":"), *file)
	if err != nil {
		return err
	}
	shop := shop{records}
	switch {
	case *dying:
		err = serveUntilKilled(ctx, os.Stdout, records)
	case *demo:
		err = shop.demo(ctx, os.Stdout, cmp.Or(*addr, anyPort))
	default:
		err = shop.serve(ctx, os.Stdout, cmp.Or(*addr, "127.0.0.1:8080"), *browse)
	}
	return errors.Join(err, records.Close())
}

const (
	anyPort = "127.0.0.1:0"
	crashed = "A process was killed while it ran an order."
)

// open opens the store: in the Redis of a URL, or in a file.
func open(ctx context.Context, redisURL, prefix, file string) (backend, error) {
	if redisURL == "" {
		return openFile(ctx, file)
	}
	records, err := openRedis(ctx, redisURL, prefix)
	if err != nil {
		return nil, fmt.Errorf("-redis-url: %w", err)
	}
	return records, nil
}

// serve serves the console until ctx ends.
func (s shop) serve(ctx context.Context, out io.Writer, addr string, browse bool) error {
	api, err := serveShop(ctx, out, addr, s.records)
	if err != nil {
		return err
	}
	left, err := s.seed(ctx, api)
	if err != nil {
		return errors.Join(err, api.close(ctx))
	}
	address := api.url + "/idempotency/"
	fmt.Fprintf(out, `The console: %s

One operation is stuck: %s. %s
Its client gets 409 outcome-unknown. Try it, resolve the operation in the console, and try again:

  curl -i %s/orders -H 'Idempotency-Key: "%s"' -H 'Content-Type: application/json' -d '%s'

Ctrl-C ends everything.
`, address, left.Short(), crashed, api.url, stuck, order)
	if browse {
		browser(out, address)
	}
	<-ctx.Done()
	return api.close(ctx)
}

// browser shows an address in the browser, or says why it could not. It does not wait,
// because some browsers run until they are closed.
func browser(out io.Writer, address string) {
	process := exec.Command(opener(), address) //nolint:gosec,noctx // one of two constants and an address of our own; a browser may outlive this program
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	go func() {
		if err := process.Run(); err != nil {
			fmt.Fprintf(out, "\nNo browser was opened (%v). The console: %s\n", err, address)
		}
	}()
}

// opener returns the program that opens the browser on this system.
func opener() string {
	if runtime.GOOS == "darwin" {
		return "open"
	}
	return "xdg-open"
}
