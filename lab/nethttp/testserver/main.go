// Testserver is the server under test for black-box tests in any language: any adapter
// over any store, with a handler that does what each request asks for. The package serve
// says what it serves; testserver -h lists its flags.
//
// It prints one line "listening on ADDR" to standard output, and JSON lines to standard
// error. SIGTERM and an interrupt drain it: it exits 0 when what ran has ended within
// five seconds, else 1. A flag or value that cannot be exits 2 at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-go/reprise/lab/serve"
)

func main() { os.Exit(run()) }

func run() int {
	options, err := serve.ParseOptions(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve.Run(ctx, options, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 1
	}
	return 0
}
