package program

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"syscall"
	"testing"
)

const (
	numClients = 4
	perKill    = 60 // requests between two kills: many more keys than one kill leaves unknown
)

// clients send keyed requests until they are stopped.
type clients struct {
	url     string
	running sync.WaitGroup
	stopped chan struct{}

	mu sync.Mutex
	tally
	orders   map[string]*order // by their keys
	refusals [numClients]int   // of each client
}

// tally counts the answers to clients.
type tally struct{ sent, refused, replays, marked int }

// order is the knowledge of clients about a key.
type order struct {
	body    string  // of its requests
	first   *result // with 201; nil: there was none
	settled bool    // a response without a mark came: every retry has to get it
}

func startClients(tb testing.TB, url string) *clients {
	tb.Helper()
	c := &clients{url: url, stopped: make(chan struct{}), orders: map[string]*order{}}
	for i := range numClients {
		c.running.Go(func() {
			client := newClient()
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				key := keyOf(i, n)
				c.mu.Lock()
				c.orders[key] = &order{body: bodyOf(n)}
				c.mu.Unlock()
				for range 3 {
					select {
					case <-c.stopped:
						return
					default:
					}
					if c.send(tb, client, key).status == http.StatusServiceUnavailable {
						c.mu.Lock()
						c.refusals[i]++
						c.mu.Unlock()
					}
				}
			}
		})
	}
	return c
}

// send sends a request and compares its response with those that the key had before.
func (c *clients) send(tb testing.TB, client *http.Client, key string) *result {
	tb.Helper()
	c.mu.Lock()
	o := c.orders[key]
	c.mu.Unlock()
	var got *result
	await(tb, "a connection to the proxy", func() bool { // it starts again
		got = post(tb.Context(), client, c.url+"/orders", key, o.body)
		return !errors.Is(got.err, syscall.ECONNREFUSED)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	mark := got.header.Get("Idempotency-Status")
	switch {
	case got.status == http.StatusServiceUnavailable:
		c.refused++
	case got.err != nil:
	case got.status != http.StatusCreated:
		if o.settled {
			tb.Errorf("%s: first %s\nthen %s", key, o.first, got)
		}
	case mark != "" && (mark != "unrecorded" || got.replayed()):
		tb.Errorf("%s: the mark %q of %s", key, mark, got)
	case o.first == nil: // a replay, if the first answer was lost on its way
		o.first = got
	case !got.replayed() || !bytes.Equal(got.body, o.first.body):
		tb.Errorf("%s: first %s\nthen %s", key, o.first, got)
	default:
		c.replays++
	}
	if got.status == http.StatusCreated {
		o.settled = o.settled || got.err == nil && mark == ""
		if mark != "" {
			c.marked++
		}
	}
	return got
}

func (c *clients) sum() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

// allRefused waits until each client was refused.
func (c *clients) allRefused(tb testing.TB) {
	tb.Helper()
	c.mu.Lock()
	before := c.refusals
	c.mu.Unlock()
	await(tb, "refusals of all clients", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, n := range c.refusals {
			if n == before[i] {
				return false
			}
		}
		return true
	})
}

func (c *clients) stop() {
	close(c.stopped)
	c.running.Wait()
}

// repeat sends a request with each key again, and once more as long as it is refused:
// some connections to the store are still broken.
func (c *clients) repeat(tb testing.TB) {
	tb.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	for key, o := range c.orders {
		o.settled = false // by this response, or not
		had := o.first != nil && o.first.header.Get("Idempotency-Status") == ""
		var got *result
		await(tb, "an answer to "+key, func() bool {
			got = c.send(tb, client, key)
			return got.status != http.StatusServiceUnavailable
		})
		if had && !o.settled {
			tb.Errorf("%s: first %s\nat last %s", key, o.first, got)
		}
	}
}
