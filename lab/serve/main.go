package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
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
	MainOf(adapter, map[string]func(*testapp.App) testapp.Server{adapter: build})
}

// MainOf is [Main] for several adapters, of which the flag -adapter names one.
func MainOf(adapter string, builds map[string]func(*testapp.App) testapp.Server) {
	os.Exit(run(adapter, builds))
}

func run(adapter string, builds map[string]func(*testapp.App) testapp.Server) int {
	options, err := ParseOptions(adapter, os.Args[1:], os.Stderr, slices.Sorted(maps.Keys(builds))...)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := Run(ctx, builds[options.Adapter], options, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		return 1
	}
	return 0
}
