package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

// Main is the main function of the program testserver of an adapter, whose native server
// build makes. It never returns.
//
// The program prints one line "listening on ADDR" to standard output, and JSON lines to
// standard error. SIGTERM and an interrupt drain it: it exits 0 when all requests have
// ended within five seconds, else 1. An unknown flag or an invalid value exits 2 at once.
func Main(adapter string, build func(*testapp.App) testapp.Server) {
	os.Exit(run(adapter, build))
}

func run(adapter string, build func(*testapp.App) testapp.Server) int {
	options, err := ParseOptions(adapter, os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := Run(ctx, build, options, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 1
	}
	return 0
}
