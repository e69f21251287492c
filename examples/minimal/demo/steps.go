package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The bodies that clients send.
const (
	book = `{"item":"book"}`
	pen  = `{"item":"pen"}`
	slow = `{"item":"slow"}`
	lost = `{"item":"lost"}` // its outcome stays unknown
)

// steps prints requests and responses for a person to read, and checks them.
type steps struct {
	*shop

	out io.Writer
}

// exchange is a request, and the response that it must get: body is a part of its body.
type exchange struct {
	key, order string
	want       reply
}

// run runs every step and stops at the first that fails.
func (d *steps) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i, step := range []struct {
		title     string
		before    func(context.Context) error
		exchanges []exchange
		seen      string
	}{
		{"The first request runs.", nil, []exchange{{"first", book, reply{201, false, `{"order":1}`}}}, "the order was taken, and the response has no marker"},
		{"Its retry gets the same response, with a marker.", nil, []exchange{{"first", book, reply{201, true, `{"order":1}`}}}, "no second order"},
		{"Of five requests at once, one runs.", d.five, []exchange{{"five", slow, reply{201, true, `{"order":2}`}}}, "four were asked to come back, and a retry gets the response of the fifth"},
		{"A key belongs to its first request.", nil, []exchange{{"first", pen, reply{422, false, "key-reused"}}}, "another item with the same key is refused"},
		{"An order needs a key.", nil, []exchange{{"", book, reply{400, false, "key-missing"}}}, "refused before anything ran"},
		{
			"A handler that did nothing releases the key.", func(context.Context) error { d.failing.Store(true); return nil },
			[]exchange{{"failing", book, reply{503, false, "the warehouse does not answer"}}, {"failing", book, reply{201, false, `{"order":3}`}}},
			"the retry ran",
		},
		{"A client that hangs up gets the response on its retry.", d.hangUp, []exchange{{"leaving", slow, reply{201, true, `{"order":4}`}}}, "the handler went on, and the order was taken once"},
		{
			"The handler does not know whether an order was taken.", nil,
			[]exchange{{"lost", lost, reply{504, false, "may have been taken"}}, {"lost", lost, reply{409, false, "outcome-unknown"}}},
			"the retry did not run",
		},
		{"An operator finds the order in the books, and records its answer in the console.", d.resolve, []exchange{{"lost", lost, reply{201, true, `{"order":5}`}}}, "the order was not run a second time"},
	} {
		fmt.Fprintf(d.out, "\n%d. %s\n", i+1, step.title)
		if step.before != nil {
			if err := step.before(ctx); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		for _, x := range step.exchanges {
			got, err := d.order(ctx, x.key, x.order)
			if err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
			d.request(x.key, x.order)
			d.response(got, "")
			if got.status != x.want.status || got.replayed != x.want.replayed || !strings.Contains(got.body, x.want.body) {
				return fmt.Errorf("step %d: want %+v, got %+v", i+1, x.want, got)
			}
		}
		fmt.Fprintf(d.out, "   ok: %s\n", step.seen)
	}
	if n := d.taken.Load(); n != 4 {
		return fmt.Errorf("%d orders were taken, want 4", n)
	}
	fmt.Fprintf(d.out, "\nEverything is as it should be: %d requests made 5 orders.\n", d.sent.Load())
	return nil
}

func (d *steps) request(key, order string) {
	if key != "" {
		key = "Idempotency-Key: " + key + "  "
	}
	fmt.Fprintf(d.out, "   > POST /orders  %s%s\n", key, order)
}

// response shows a response, and how many times it came.
func (d *steps) response(r reply, times string) {
	fmt.Fprintf(d.out, "   < %d %s%s\n", r.status, http.StatusText(r.status), times)
	if r.replayed {
		fmt.Fprintln(d.out, "   < Idempotent-Replayed: true")
	}
	fmt.Fprintf(d.out, "   < %s\n", strings.TrimSpace(r.body))
}

// five sends a slow order five times at once. The four that do not run are answered
// first.
func (d *steps) five(ctx context.Context) error {
	type result struct {
		reply
		err error
	}
	results := make(chan result, 5)
	for range cap(results) {
		go func() { r, err := d.order(ctx, "five", slow); results <- result{r, err} }()
	}
	d.request("five", slow)
	for n, want := range []int{409, 409, 409, 409, 201} {
		if want == 201 {
			d.slow <- struct{}{}
			d.slow <- struct{}{}
		}
		r := <-results
		if r.err != nil || r.status != want || r.replayed {
			return fmt.Errorf("want %d, got %+v, %w", want, r.reply, r.err)
		}
		switch n {
		case 3:
			d.response(r.reply, " (4 times)")
		case 4:
			d.response(r.reply, "")
		}
	}
	return nil
}

// hangUp leaves a slow order while it runs, and lets it end.
func (d *steps) hangUp(ctx context.Context) error {
	leaving, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() { _, err := d.order(leaving, "leaving", slow); left <- err }()
	d.slow <- struct{}{} // it runs
	d.request("leaving", slow)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the client did not leave: %w", err)
	}
	fmt.Fprintln(d.out, "     (the client hangs up before the response)")
	d.slow <- struct{}{}
	for {
		record, err := d.records.Inspect(ctx, idOf("leaving"))
		if err != nil || record.State == store.StateCompleted {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resolve does what a person does in the console: it finds the stuck order, and sends the
// form of its page.
func (d *steps) resolve(ctx context.Context) error {
	id := idOf("lost")
	home, err := d.send(ctx, http.MethodGet, "/idempotency/", "", "", "")
	if err != nil || !strings.Contains(home.body, id.Short()) {
		return fmt.Errorf("the console does not show %s, %w", id.Short(), err)
	}
	fmt.Fprintf(d.out, "   the console shows %s: unknown, policy orders\n", id.Short())
	record, err := d.records.Inspect(ctx, id)
	if err != nil {
		return err
	}
	form := url.Values{
		"action": {"answer"}, "state": {"unknown"}, "fence": {strconv.FormatUint(record.Fence, 10)}, "status": {"201"}, "content-type": {"application/json"},
		"body": {`{"order":5}`}, "retention": {"24h"}, "reason": {"in the books as order 5"}, "confirm": {id.Short()},
	}
	page, err := d.send(ctx, http.MethodPost, "/idempotency/records/orders/"+id.String(), "application/x-www-form-urlencoded", "", form.Encode())
	if err != nil || !strings.Contains(page.body, "The answer was recorded") {
		return fmt.Errorf("the console: %+v, %w", page, err)
	}
	return nil
}
