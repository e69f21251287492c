// Package floors serves POST /t/orders as the test servers do, with the minimal
// middleware over a database in place of Reprise, or without one: the baselines of the
// benchmarks.
//
//	none      the framework alone
//	redis     two bare scripts around the handler: SET, SET; a replay is one GET
//	setnx     the middleware of the articles: SET NX GET, the response as JSON; neither
//	          fingerprints nor owners nor leases
//	postgres  an INSERT and an UPDATE by primary key around the handler, prepared; a
//	          replay is one SELECT
//	sqlite    the same in a file
//	mysql     the same in MariaDB or MySQL
//	etcd      two transactions that write a value each; a replay is one read
//	forward   httputil.ReverseProxy with the transport of package proxy
//	effect    the framework alone; a handler's effect is an INSERT in a transaction that
//	          the handler opens
//	key       the same, and the handler keeps the key and its response in a row by hand
//
// The floors from redis to etcd but setnx make no decision: the load marks each request
// as new or a replay.
package floors

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// middleware is a floor around a handler of net/http.
type middleware = func(http.Handler) http.Handler

// around builds a server of net/http with a middleware that is not Reprise.
func around(m middleware) func(*testapp.App) testapp.Server {
	return testapp.NetHTTP(func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return m
	})
}

// Main is the main function of the program floors of a framework, whose server without
// any middleware bare makes.
func Main(framework string, bare func(*testapp.App) testapp.Server) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, framework, bare); err != nil {
		fmt.Fprintln(os.Stderr, "floors:", err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}

func run(ctx context.Context, framework string, build func(*testapp.App) testapp.Server) error {
	floor := flag.String("floor", "none", "one of none, redis, setnx, postgres, sqlite, mysql, etcd, forward, effect, key; with nethttp only")
	var o options
	flag.StringVar(&o.redisURL, "redis-url", "", "`URL` of Redis, for redis and setnx")
	flag.StringVar(&o.postgresURL, "postgres-url", "", "`URL` of PostgreSQL, for postgres, effect and key")
	flag.StringVar(&o.mysqlURL, "mysql-url", "", "`URL` of MariaDB or MySQL, for mysql")
	flag.StringVar(&o.etcdURL, "etcd-url", "", "members of etcd, a `list` of host:port with commas, for etcd")
	flag.StringVar(&o.sqliteFile, "sqlite-file", "", "`file` of SQLite, for sqlite")
	flag.StringVar(&o.upstream, "upstream", "", "`host:port` of another server, for forward")
	flag.IntVar(&o.pool, "pool", 0, "connections to the server of the store; 0: the client's default")
	flag.Parse()

	served := adaptertest.Options{Store: memstore.New()}
	switch {
	case *floor == "none":
	case framework != "nethttp":
		return fmt.Errorf("the floor %s is that of net/http, and this is %s", *floor, framework)
	case *floor == "effect", *floor == "key":
		effect, err := o.openEffect(ctx, *floor == "key")
		if err != nil {
			return err
		}
		served.Effect = effect
	default:
		m, err := o.open(ctx, *floor)
		if err != nil {
			return err
		}
		build = around(m)
	}
	a, err := testapp.New(served, slog.New(slog.DiscardHandler))
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
