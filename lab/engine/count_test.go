package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Every request that has a key, or is refused, has one counted outcome, and every attempt
// one counted end, despite failures of the store, the client, the handler and the
// process. Stats and an observer count the same.
func TestEveryRequestAndEveryAttemptIsCountedOnce(t *testing.T) {
	const rounds = 4
	met := newCounted()
	var mu sync.Mutex
	t.Run("rounds", func(t *testing.T) {
		for seed := range rounds {
			inBubble(t, fmt.Sprint("seed=", seed), func(t *testing.T) {
				c := newCounting(t, uint64(seed))
				c.run()
				mu.Lock()
				defer mu.Unlock()
				for _, p := range c.processes {
					met.add(p.seen)
				}
			})
		}
	})
	for _, o := range reprise.Outcomes() {
		if met.outcomes[o] == 0 {
			t.Errorf("no request of the test ended as %v", o)
		}
	}
	for _, e := range reprise.AttemptEnds() {
		if met.ends[e] == 0 {
			t.Errorf("no attempt of the test ended as %v", e)
		}
	}
}

// counting is one round: a few processes on two stores, and clients that ask all of them.
type counting struct {
	t         *testing.T
	random    *rand.Rand
	processes []*countedProcess
}

// countedProcess is an engine with its guards, and the observations of the test.
type countedProcess struct {
	engine *reprise.Engine
	faults *faultstore.Faults
	guards []*protocol.Guard
	seen   *counted

	requests atomic.Int64 // that were answered or run
	attempts atomic.Int64 // that were run
}

// counted is an observer that adds up the counts in events.
type counted struct {
	mu       sync.Mutex
	outcomes map[reprise.Outcome]uint64
	ends     map[reprise.AttemptEnd]uint64
	labels   map[string]uint64 // of outcomes
	flaws    []string
}

func newCounted() *counted {
	return &counted{
		outcomes: make(map[reprise.Outcome]uint64), ends: make(map[reprise.AttemptEnd]uint64), labels: make(map[string]uint64),
	}
}

// Observe implements [reprise.Observer].
func (c *counted) Observe(_ context.Context, e reprise.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Counted && e.Outcome != 0 {
		c.outcomes[e.Outcome]++
		c.labels[e.Label]++
		if e.End != 0 || e.ClaimTime < 0 || e.WaitTime < 0 || e.ClaimTime+e.WaitTime != e.Elapsed {
			c.flaws = append(c.flaws, fmt.Sprintf("%+v", e))
		}
	}
	if e.Counted && e.End != 0 {
		c.ends[e.End]++
		if e.RunTime < 0 || e.CompleteTime < 0 || e.RunTime+e.CompleteTime > e.Elapsed {
			c.flaws = append(c.flaws, fmt.Sprintf("%+v", e))
		}
	}
}

func (c *counted) add(other *counted) {
	for o, n := range other.outcomes {
		c.outcomes[o] += n
	}
	for e, n := range other.ends {
		c.ends[e] += n
	}
}

func newCounting(t *testing.T, seed uint64) *counting {
	c := &counting{t: t, random: rand.New(rand.NewPCG(seed, 13))}
	leased, atomics := memstore.New(), atomicStore{memstore.New()}
	for _, inner := range []store.Store{leased, leased, atomics} {
		c.processes = append(c.processes, c.newProcess(inner))
	}
	return c
}

// newProcess makes a process whose store fails about every fifth call.
func (c *counting) newProcess(inner store.Store) *countedProcess {
	st, faults := faultstore.New(inner)
	p := &countedProcess{faults: faults, seen: newCounted()}
	for _, op := range []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release, faultstore.Unknown} {
		for range 2000 {
			faults.Next(op, c.fault())
		}
	}
	if len(c.processes) == 0 { // one loses every lease of a handler that takes long
		faults.Clear(faultstore.Renew)
		faults.Always(faultstore.Renew, faultstore.FailBefore(store.ErrUnavailable))
	}
	var err error
	p.engine, err = reprise.New(st, reprise.Config{
		Observer: p.seen, Lease: 2 * time.Second, ClaimTimeout: time.Second, CompleteTimeout: time.Second, MaxRun: 5 * time.Second,
		Waiting: reprise.WaitLimits{PerKey: 3}, Background: reprise.BackgroundLimits{Tasks: 20, Age: 10 * time.Second},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cfg := range []protocol.Config{
		{Name: "orders", Wait: 500 * time.Millisecond, Fingerprint: protocol.Fingerprinting{Func: c.fingerprint}},
		{Name: "strict", Required: true, Preset: reprise.AtMostOnce},
		{Name: "open", FailOpen: true, MaxAttempts: 3},
		{Retention: 3 * time.Second, Horizon: time.Hour},
	} {
		cfg.Limits = protocol.Limits{RequestBody: 64, ResponseBody: 64}
		guard, err := protocol.Over(p.engine, cfg)
		if err != nil {
			c.t.Fatal(err)
		}
		p.guards = append(p.guards, guard)
	}
	return p
}

func (*counting) fingerprint(r *protocol.Request, key string, body []byte) (store.Fingerprint, error) {
	if string(body) == "panic" {
		panic("a bug in the policy")
	}
	return protocol.DefaultFingerprint(r, key, body)
}

// fault draws the fault of a call of the store.
func (c *counting) fault() faultstore.Fault {
	switch c.random.IntN(60) {
	case 0:
		return faultstore.FailBefore(store.ErrUnavailable)
	case 1:
		return faultstore.LoseReply()
	case 2:
		return faultstore.FailBefore(store.ErrFull)
	case 3:
		return faultstore.FailBefore(store.ErrCorrupt)
	case 4:
		return faultstore.FailAfter(store.ErrNotReplicated)
	case 5:
		return faultstore.FailBefore(store.ErrMisconfigured)
	case 6:
		return faultstore.FailBefore(store.ErrNotApplied)
	case 7:
		return faultstore.ExecuteLate(1500 * time.Millisecond)
	case 8:
		return faultstore.Hang()
	case 9:
		return faultstore.Panic("a bug in the store")
	case 10:
		return faultstore.FailBefore(errors.New("unplaced"))
	case 11:
		return faultstore.Delay(300 * time.Millisecond)
	case 12:
		return faultstore.FailBefore(store.ErrLeaseLost)
	default:
		return faultstore.Pass()
	}
}

// run lets the clients of one round come and go, closes one process before its handlers
// have ended, and counts.
func (c *counting) run() {
	var clients sync.WaitGroup
	for n := range 1500 {
		client := c.newClient()
		clients.Go(func() {
			inTime(client.arrives)
			done := make(chan struct{})
			go func() { // which the client may end
				defer close(done)
				client.ask()
			}()
			<-done
		})
		if n == 1000 {
			clients.Go(func() {
				inTime(20 * time.Second)
				ctx, cancel := context.WithTimeout(c.t.Context(), time.Millisecond)
				defer cancel()
				_ = c.processes[0].engine.Close(ctx)
			})
		}
	}
	clients.Wait()
	for _, p := range c.processes {
		p.faults.Clear()
		p.faults.LetGo()
		if err := p.engine.Close(c.t.Context()); err != nil {
			c.t.Error(err)
		}
		p.faults.Close()
		synctest.Wait()
		p.check(c.t)
	}
}

// check compares the actions of the test with the counts.
func (p *countedProcess) check(t *testing.T) {
	t.Helper()
	s := p.engine.Stats()
	var outcomes, ends, byLabel uint64
	for o, n := range s.Outcomes {
		outcomes += n
		if n != p.seen.outcomes[o] {
			t.Errorf("%v: %d counted, %d observed", o, n, p.seen.outcomes[o])
		}
	}
	for e, n := range s.Ends {
		ends += n
		if n != p.seen.ends[e] {
			t.Errorf("%v: %d counted, %d observed", e, n, p.seen.ends[e])
		}
	}
	for label, totals := range s.Labels {
		own := uint64(0)
		for _, n := range totals.Outcomes {
			own += n
		}
		if byLabel += own; own != p.seen.labels[label] {
			t.Errorf("label %q: %d counted, %d observed", label, own, p.seen.labels[label])
		}
	}
	requests, attempts := uint64(p.requests.Load()), uint64(p.attempts.Load())
	if outcomes != requests || byLabel != requests {
		t.Errorf("%d requests, %d outcomes, %d by label: %v", requests, outcomes, byLabel, s.Outcomes)
	}
	if begun := s.Outcomes[reprise.Claimed] + s.Outcomes[reprise.Unprotected]; begun != attempts || ends != attempts {
		t.Errorf("%d attempts, %d begun, %d ends: %v", attempts, begun, ends, s.Ends)
	}
	if s.Running != 0 || s.Waiting != 0 || s.Background != 0 || s.EventsDropped != 0 {
		t.Errorf("after Close: %+v", s)
	}
	for _, flaw := range p.seen.flaws {
		t.Errorf("an event whose parts do not fit: %s", flaw)
	}
}

// countedClient is one request and its result.
type countedClient struct {
	process *countedProcess
	guard   *protocol.Guard
	arrives time.Duration
	patient time.Duration // 0: for ever
	keys    []string
	body    io.Reader
	scope   func() (string, error)
	runs    time.Duration
	handler int
	status  int
}

// newClient draws a client.
func (c *counting) newClient() *countedClient {
	r := c.random
	p := c.processes[r.IntN(len(c.processes))]
	arrives := time.Duration(r.IntN(40_000)) * time.Millisecond
	client := &countedClient{
		process: p, guard: p.guards[r.IntN(len(p.guards))], arrives: arrives,
		keys:    []string{fmt.Sprint(int(arrives.Seconds())/8, "-", r.IntN(30))}, // new ones all the time
		body:    strings.NewReader(fmt.Sprint("body", r.IntN(20)/19)),
		scope:   func() (string, error) { return "tenant", nil },
		runs:    time.Duration(r.IntN(400)) * time.Millisecond,
		handler: r.IntN(12), status: []int{200, 201, 404, 500, 401}[r.IntN(5)],
	}
	if r.IntN(5) == 0 {
		client.runs *= 20 // for some longer than the lease, and than MaxRun
	}
	if r.IntN(4) == 0 {
		client.patient = time.Duration(1+r.IntN(400)) * time.Millisecond
	}
	switch r.IntN(40) {
	case 0:
		client.keys = nil
	case 1:
		client.keys = []string{"not a key"}
	case 2:
		client.keys = []string{"a", "b"}
	case 3:
		client.scope = func() (string, error) { return "", errors.New("no tenant") }
	case 4:
		client.scope = func() (string, error) { panic("a bug") }
	case 5:
		client.scope = func() (string, error) { runtime.Goexit(); return "", nil }
	case 6:
		client.body = strings.NewReader(strings.Repeat("x", 65))
	case 7:
		client.body = failingBody{nil}
	case 8:
		client.body = failingBody{http.ErrAbortHandler}
	case 9:
		client.body = strings.NewReader("panic")
	}
	return client
}

// failingBody fails, or panics, when it is read.
type failingBody struct{ panics any }

func (f failingBody) Read([]byte) (int, error) {
	if f.panics != nil {
		panic(f.panics)
	}
	return 0, io.ErrUnexpectedEOF
}

// ask sends the request, and runs it if it is to be run.
func (c *countedClient) ask() {
	ctx := context.Background()
	if c.patient > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.patient)
		defer cancel()
	}
	defer func() { _ = recover() }() // a server does it
	c.process.requests.Add(1)        // unless it passes: a panic counts
	a := c.guard.Admit(ctx, protocol.Request{
		Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": c.keys}, Body: c.body,
	}, c.scope)
	switch {
	case a.Pass:
		c.process.requests.Add(-1)
	case a.Exchange != nil:
		c.process.attempts.Add(1)
		c.handle(a.Exchange)
	}
}

// handle is the handler behind an adapter, which may panic, end its goroutine, be cut
// short, or go on after its lease.
func (c *countedClient) handle(x *protocol.Exchange) {
	wire := &discard{header: make(http.Header)}
	w := new(protocol.Recorder)
	w.Start(x, wire.header, wire, http.DetectContentType)
	defer w.Close()
	inTime(c.runs)
	switch c.handler {
	case 0:
		panic("a bug in the handler")
	case 1:
		runtime.Goexit()
	case 2:
		w.WriteHeader(c.status)
		panic("a bug after the first byte")
	case 3:
		w.Cut()
	case 4:
		w.Flush()
	case 5:
		protocol.Release(x.Context())
	case 6:
		w.Hijack()
	case 7:
		_, _ = w.WriteString(strings.Repeat("x", 65))
	case 8:
		protocol.Unknown(x.Context(), "the bank timed out")
	}
	w.WriteHeader(c.status)
	_, _ = w.WriteString("answer")
	w.Finish()
	w.Finish()
}

// discard is a connection without a peer.
type discard struct{ header http.Header }

func (*discard) WriteHeader(int)             {}
func (*discard) Write(p []byte) (int, error) { return len(p), nil }

// atomicStore says that it commits effects with the completion.
type atomicStore struct{ *memstore.Store }

// Claim implements [reprise.Store].
func (s atomicStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	res, err := s.Store.Claim(ctx, r)
	if res.Outcome == store.Claimed {
		res.Atomic, res.Remaining, res.Attempt = true, time.Minute, 1
	}
	return res, err
}
