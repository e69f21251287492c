// Floors serves POST /t/orders as lab/testserver does, with the least that a middleware
// over a database costs in place of Reprise, or with nothing: what the benchmarks compare
// with.
//
//	none      the framework alone
//	redis     two bare scripts around the handler: SET, SET; a replay is one GET
//	setnx     the middleware of the articles: SET NX GET, the response as JSON; neither
//	          fingerprints nor owners nor leases
//	postgres  an INSERT and an UPDATE by primary key around the handler, prepared; a
//	          replay is one SELECT
//
// The floors redis and postgres decide nothing: the load tells them whether a request is
// a replay.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// bare has the frameworks of this binary without any middleware.
var bare = map[string]func(*testapp.App) testapp.Server{"nethttp": around(nil)}

// middleware is a floor around a handler of net/http.
type middleware = func(http.Handler) http.Handler

// around builds a server of net/http with a middleware that is not Reprise.
func around(m middleware) func(*testapp.App) testapp.Server {
	return testapp.NetHTTP(func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		if m == nil {
			return func(h http.Handler) http.Handler { return h }
		}
		return m
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "floors:", err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}

func run(ctx context.Context) error {
	framework := flag.String("framework", "nethttp", "one of "+strings.Join(slices.Sorted(maps.Keys(bare)), ", "))
	floor := flag.String("floor", "none", "one of none, redis, setnx, postgres; with nethttp only")
	var o options
	flag.StringVar(&o.redisURL, "redis-url", "", "`URL` of Redis, for redis and setnx")
	flag.StringVar(&o.postgresURL, "postgres-url", "", "`URL` of PostgreSQL, for postgres")
	flag.IntVar(&o.pool, "pool", 0, "connections to the server of the store; 0: the client's default")
	flag.Parse()

	build := bare[*framework]
	if build == nil {
		return fmt.Errorf("no framework %q in this binary", *framework)
	}
	if *floor != "none" {
		m, closer, err := o.open(ctx, *floor)
		if err != nil {
			return err
		}
		defer closer()
		build = around(m)
	}
	a, err := testapp.New(adaptertest.Options{Store: memstore.New()}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	server, ended := build(a), make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return a.Drain(context.WithoutCancel(ctx), server)
	}
}
