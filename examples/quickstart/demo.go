package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/listen"
)

// The bodies that the demo sends.
const (
	oneBook  = `{"item":"book","quantity":1}`
	twoBooks = `{"item":"book","quantity":2}`
)

// demo is the API on a free port, and a client that talks to it.
type demo struct {
	transcript
	bank  *bank
	url   string
	posts atomic.Int64 // requests to order that were sent
	run   string       // part of every key, because the store may remember the keys of earlier runs
}

// runDemo serves the API and shows its clients' responses. It returns an error at the
// first unexpected response.
func runDemo(ctx context.Context, out io.Writer, addr string, store store.Store) error {
	bank := &bank{charged: make(map[string]int)}
	api, engine, err := newAPI(store, bank.charge)
	if err != nil {
		return err
	}
	ln, err := listen.On(ctx, out, addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	d := &demo{transcript: transcript{out: out}, bank: bank, url: "http://" + ln.Addr().String(), run: rand.Text()[:6]}
	shown := d.steps(ctx)

	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	closed := errors.Join(server.Shutdown(closing), engine.Close(closing))
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		closed = errors.Join(closed, err)
	}
	return errors.Join(shown, closed)
}

// steps runs every step and stops at the first that fails.
func (d *demo) steps(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"The first request runs", d.firstRun},
		{"Its retry gets the same response, with a marker", d.replay},
		{"Of five requests at once, one runs", d.concurrent},
		{"A key belongs to its first request", d.reuse},
		{"An order needs a key", d.missingKey},
		{"A failure is not kept: the retry runs again", d.failure},
		{"A client that hangs up gets the response on its retry", d.disconnect},
		{"A process dies, and the next one answers the retry", d.death},
	} {
		d.title(i+1, step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.title, err)
		}
	}
	d.say("\nEverything is as it should be: %d requests for an order made %d orders.", d.posts.Load()+2, d.bank.total()+1) // with those of the other processes
	return nil
}

func (d *demo) key(name string) string { return name + "-" + d.run }

func (d *demo) firstRun(ctx context.Context) error {
	r, err := d.post(ctx, d.key("first"), oneBook)
	if err != nil {
		return err
	}
	d.exchange(d.key("first"), oneBook, r)
	return d.check("the order was made, and the response has no marker", r.status == http.StatusCreated && !r.replayed() && d.bank.total() == 1)
}

func (d *demo) replay(ctx context.Context) error {
	r, err := d.post(ctx, d.key("first"), oneBook)
	if err != nil {
		return err
	}
	d.exchange(d.key("first"), oneBook, r)
	order, err := d.get(ctx, r.header.Get("Location"))
	if err != nil {
		return err
	}
	return d.check("the same order, read back from its Location; the bank was not asked again",
		r.status == http.StatusCreated && r.replayed() && order.body == r.body && d.bank.total() == 1)
}

func (d *demo) concurrent(ctx context.Context) error {
	release := d.bank.hold()
	defer release()
	replies := make(chan reply, 5)
	for range cap(replies) {
		go func() {
			r, err := d.post(ctx, d.key("five"), twoBooks)
			r.err = err
			replies <- r
		}()
	}
	d.request(d.key("five"), twoBooks)
	for left := cap(replies); left > 0; left-- {
		want, times := http.StatusConflict, ""
		switch left {
		case 2:
			times = " (4 times)"
		case 1:
			release() // four are answered; the bank lets the fifth go on
			want = http.StatusCreated
		}
		r := <-replies
		if r.err != nil {
			return r.err
		}
		if left <= 2 {
			d.response(r, times)
		}
		if err := d.check("", r.status == want && !r.replayed()); err != nil {
			return err
		}
	}
	r, err := d.post(ctx, d.key("five"), twoBooks)
	if err != nil {
		return err
	}
	d.exchange(d.key("five"), twoBooks, r)
	return d.check("one made the order, four were asked to come back, and a retry gets the replay",
		r.status == http.StatusCreated && r.replayed() && d.bank.total() == 2)
}

func (d *demo) reuse(ctx context.Context) error {
	r, err := d.post(ctx, d.key("first"), twoBooks)
	if err != nil {
		return err
	}
	d.exchange(d.key("first"), twoBooks, r)
	return d.check("a different quantity with the same key is refused, and nothing ran",
		r.status == http.StatusUnprocessableEntity && d.bank.total() == 2)
}

func (d *demo) missingKey(ctx context.Context) error {
	r, err := d.post(ctx, "", oneBook)
	if err != nil {
		return err
	}
	d.exchange("", oneBook, r)
	return d.check("refused before anything ran", r.status == http.StatusBadRequest && d.bank.total() == 2)
}

func (d *demo) failure(ctx context.Context) error {
	d.bank.fail()
	var last reply
	for _, want := range []int{http.StatusBadGateway, http.StatusCreated} {
		r, err := d.post(ctx, d.key("failing"), oneBook)
		if err != nil {
			return err
		}
		d.exchange(d.key("failing"), oneBook, r)
		if err := d.check("", r.status == want && !r.replayed()); err != nil {
			return err
		}
		last = r
	}
	return d.check("the bank failed once; the retry made the order, and presented the same key to the bank",
		last.status == http.StatusCreated && d.bank.total() == 3 && d.bank.repeated() == 1)
}

func (d *demo) disconnect(ctx context.Context) error {
	release := d.bank.hold()
	defer release()
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	left := make(chan error, 1)
	go func() {
		_, err := d.post(leaving, d.key("leaving"), oneBook)
		left <- err
	}()
	if err := d.bank.entered(ctx); err != nil {
		return err
	}
	d.request(d.key("leaving"), oneBook)
	leave()
	if err := d.check("", errors.Is(<-left, context.Canceled)); err != nil {
		return err
	}
	d.say("     (the client hangs up before the response; the handler goes on)")
	release()
	r, err := d.retry(ctx, d.key("leaving"), oneBook)
	if err != nil {
		return err
	}
	d.exchange(d.key("leaving"), oneBook, r)
	return d.check("the response was kept, and the order was made once",
		r.status == http.StatusCreated && r.replayed() && d.bank.total() == 4)
}

// retry retries as a client should: on 409 it waits for Retry-After and sends the request
// again.
func (d *demo) retry(ctx context.Context, key, body string) (reply, error) {
	for {
		r, err := d.post(ctx, key, body)
		if err != nil || r.status != http.StatusConflict {
			return r, err
		}
		seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil {
			return r, fmt.Errorf("Retry-After: %w", err)
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
