// Demo is an orders API with the console of its operators: each answer that a client can
// get, and an order whose outcome is unknown, for an operator to resolve.
//
//	go run ./examples/minimal/demo                             # serve both, with such an order
//	go run ./examples/minimal/demo -print -addr 127.0.0.1:0    # print what clients and operators see, and check it
//	curl -i localhost:8080/orders -H 'Idempotency-Key: order-stuck' --json '{"item":"lost"}'   # of the one that serves
//
//run:background until 8080; prints "17 requests made 5 orders."; prints "outcome-unknown"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/reprise-go/reprise/core/memstore"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	transcript := flag.Bool("print", false, "print what clients and operators see, check it, and exit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *addr, *transcript)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, addr string, transcript bool) error {
	s, err := newShop(ctx, addr, memstore.New())
	if err != nil {
		return err
	}
	if transcript {
		err = (&steps{s, out}).run(ctx)
	} else {
		err = s.show(ctx, out)
	}
	return errors.Join(err, s.close(ctx))
}

// show leaves an order with an unknown outcome behind, and serves until ctx ends.
func (s *shop) show(ctx context.Context, out io.Writer) error {
	for key, item := range map[string]string{"order-done": book, "order-stuck": lost} {
		if _, err := s.order(ctx, key, item); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, `The console: %[1]s/idempotency/

One order is stuck: %[2]s. The warehouse did not say whether it took it.
Its client gets 409 outcome-unknown. Try it, resolve the order in the console, and try again:

  curl -i %[1]s/orders -H 'Idempotency-Key: order-stuck' -H 'Content-Type: application/json' -d '%[3]s'

Ctrl-C ends everything.
`, s.url, idOf("order-stuck").Short(), lost)
	<-ctx.Done()
	return nil
}
