// Etcd is a service whose payments run once, whichever member of an etcd cluster fails: a
// claim counts once a majority of the members has it on disk.
//
//	ETCD_MEMBERS=127.0.0.1:2379 GOWORK=off go -C examples/etcd run .
//	curl -i localhost:8080/payments -H 'Idempotency-Key: p-1' -d '{"amount":100}'   # twice
//
//run:not run: it needs a cluster of etcd; lab/etcd runs it on one
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, strings.Split(os.Getenv("ETCD_MEMBERS"), ","), os.Getenv("ADDR"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, members []string, addr string) error {
	if addr == "" {
		addr = "127.0.0.1:8080"
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         members,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, // leave a frozen member
	})
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := repriseetcd.Open(ctx, client, repriseetcd.Config{Prefix: "payments/"})
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true, Preset: reprise.AtMostOnce})
	if err != nil {
		return err
	}
	var paid atomic.Int64
	mux := http.NewServeMux()
	mux.Handle("POST /payments", reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d\n", paid.Add(1))
	})))
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("Serving payments on http://%s\n", ln.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), guard.Close(closing))
}
