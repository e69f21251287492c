package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fault is how the bank fails at a payment, until a lookup asked about it, or the bank
// recovers.
type fault int

const (
	none        fault = iota
	hangs             // it books nothing, and never answers
	booksHangs        // it books, and never answers
	late              // it books when the service no longer waits
	breaks            // it books nothing, and breaks the connection
	booksBreaks       // it books, and breaks the connection
	restarts          // its process dies, and comes back
	mute              // as booksHangs, and its lookups fail, too
)

// recovery is how many calls of a payment fail: more than one handler makes.
const recovery = 12

// faultOf returns the fault for the payment with a number. One of 100 needs an operator.
func faultOf(id int) fault {
	switch {
	case id%100 == 39:
		return mute
	case id%20 == 3:
		return restarts
	case id%2 == 0:
		return none
	default:
		return hangs + fault(id/2%5)
	}
}

// roughBank is a bank that books once for each key, and fails in every way.
type roughBank struct {
	*pretendBank

	t        *testing.T
	addr     string
	server   *http.Server
	restarts map[int]bool

	mu    sync.Mutex
	calls map[string]int       // by reference
	first map[string]time.Time // the first call, by key
	early int                  // lookups that came while the bank may still book
	known map[string]bool      // keys that a lookup asked about: the bank books no earlier call of them any more
}

func startRoughBank(t *testing.T) *roughBank {
	t.Helper()
	b := &roughBank{pretendBank: newPretendBank(), t: t, addr: "127.0.0.1:0", restarts: map[int]bool{}, known: map[string]bool{}, calls: map[string]int{}, first: map[string]time.Time{}}
	if err := b.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = b.server.Close()
	})
	return b
}

// listen starts the bank's process, again at the same address.
func (b *roughBank) listen() error {
	listener, err := new(net.ListenConfig).Listen(b.t.Context(), "tcp", b.addr)
	if err != nil {
		return err
	}
	b.addr = listener.Addr().String()
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	go func() { _ = b.server.Serve(listener) }()
	return nil
}

// restart ends the bank's process for a moment, once for each payment.
func (b *roughBank) restart(id int) {
	b.mu.Lock()
	if b.restarts[id] {
		b.mu.Unlock()
		return
	}
	b.restarts[id] = true
	_ = b.server.Close()
	b.mu.Unlock()
	time.AfterFunc(50*time.Millisecond, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for b.t.Context().Err() == nil && b.listen() != nil { // the port is free again soon
			pause(b.t.Context(), 10*time.Millisecond)
		}
	})
}

// ServeHTTP implements [http.Handler].
func (b *roughBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.tell(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var p payment
	if err != nil || json.Unmarshal(body, &p) != nil {
		http.Error(w, "want a payment", http.StatusBadRequest)
		return
	}
	key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
	f := faultOf(idOf(p.Reference))
	if f == restarts {
		b.restart(idOf(p.Reference)) //nolint:contextcheck // it outlives the request
	}
	b.mu.Lock()
	if b.first[key].IsZero() {
		b.first[key] = time.Now()
	}
	if b.calls[p.Reference]++; b.known[key] || b.calls[p.Reference] > recovery {
		f = none
	}
	b.mu.Unlock()
	switch f {
	case hangs:
		<-r.Context().Done()
	case booksHangs, mute:
		b.book(key, p)
		<-r.Context().Done()
	case late:
		<-r.Context().Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.known[key] {
			b.book(key, p)
		}
	case breaks:
		panic(http.ErrAbortHandler)
	case booksBreaks:
		b.book(key, p)
		panic(http.ErrAbortHandler)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.pretendBank.ServeHTTP(w, r)
	}
}

// tell answers a lookup.
func (b *roughBank) tell(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/payments/")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pretendBank.mu.Lock()
	entry := b.booked[key]
	b.pretendBank.mu.Unlock()
	if entry.Number > 0 && faultOf(idOf(entry.Reference)) == mute {
		http.Error(w, "ask your desk", http.StatusServiceUnavailable)
		return
	}
	if !b.known[key] && time.Since(b.first[key]) < hurried.settled-hurried.call {
		b.early++
	}
	b.known[key] = true
	b.pretendBank.ServeHTTP(w, r)
}

// reference names the payment with a number, and idOf reads the name.
func reference(id int) string { return fmt.Sprintf("payment %d", id) }

func idOf(reference string) int {
	id, _ := strconv.Atoi(strings.TrimPrefix(reference, "payment "))
	return id
}

// bookings returns how often each payment was booked.
func (b *roughBank) bookings() map[int]int {
	b.pretendBank.mu.Lock()
	defer b.pretendBank.mu.Unlock()
	times := map[int]int{}
	for _, entry := range b.ledger {
		times[idOf(entry.Reference)]++
	}
	return times
}

// told returns about how many payments lookups had an answer.
func (b *roughBank) told() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known)
}
