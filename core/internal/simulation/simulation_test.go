package simulation

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/chance"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// budget bounds the calls of the engines.
const budget = 2 * time.Second

// inTime lets d pass, which takes no time in a bubble.
func inTime(d time.Duration) { <-time.After(d) }

// simulation is a bubble with processes that pause and crash over a lossy network, and
// clients that retry until they have a response. It records violations.
type simulation struct {
	universe
	seed    uint64
	store   *memstore.Store
	faulty  atomic.Bool
	lost    atomic.Int64
	pauses  atomic.Int64
	crashes atomic.Int64
	replays atomic.Int64
	overs   atomic.Int64 // takeovers
	late    atomic.Int64 // completions that came too late
	unknown atomic.Int64 // records that say that the outcome is unknown

	mu         sync.Mutex
	actors     uint64
	running    []*simProcess
	networks   []*network                      // of the crashed ones too
	handlers   map[string]map[*simHandler]bool // that run, of a key
	executions map[string]int
	answers    map[string]string // that were recorded
	unsure     map[string]bool   // keys of which a record may say that its outcome is unknown
	unresolved map[string]bool   // those of which one does, so that nothing runs before an operator decides
	violations []string
	*chronicle
}

// simProcess is one process, until it crashes.
type simProcess struct {
	*reprise.Engine
	net  *network
	name string
}

// simHandler is a handler that runs.
type simHandler struct {
	ctx     context.Context // cancelled when it must not believe any more
	process *simProcess
	asked   time.Time // by its client
}

// Observe implements [reprise.Observer]: the record of a handler that did not return in
// time says so.
func (s *simulation) Observe(_ context.Context, e reprise.Event) {
	if e.End == reprise.EndUnknown && !e.Counted {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.suspend(s.keyOf(e.ID), "ran too long")
	}
}

// keyOf returns the key of an operation.
func (s *simulation) keyOf(id store.ID) string {
	for n := range s.keys {
		if key := "key " + strconv.Itoa(n); store.DeriveID(scope, "", key) == id {
			return key
		}
	}
	panic("no such operation")
}

const scope = "tenant"

// suspend notes that the record of a key says that its outcome is unknown. The lock is
// held.
func (s *simulation) suspend(key, why string) {
	s.unknown.Add(1)
	s.unsure[key], s.unresolved[key] = true, true
	s.note(key, "unknown: %s", why)
}

// operate lets an operator decide about a key whose outcome is unknown, sometimes.
func (s *simulation) operate(d *dice, op reprise.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := op.Key
	if !s.unresolved[key] || d.percent(50) {
		return
	}
	id := store.DeriveID(op.Scope, op.Endpoint, key)
	rec, err := s.store.Inspect(context.Background(), id)
	if err == nil && rec.State != store.StateUnknown {
		s.violate(key, "an operator finds %v, want unknown", rec.State)
	}
	resolution := store.Resolution{Fence: rec.Fence, Forget: op.Preset == reprise.Recoverable && d.percent(50), Payload: []byte("operator"), Retention: 24 * time.Hour}
	if err == nil {
		err = s.store.Resolve(context.Background(), id, resolution)
	}
	if err != nil {
		s.violate(key, "an operator cannot resolve it: %v", err)
	}
	s.unresolved[key] = false
	s.note(key, "resolved: forgotten %v", resolution.Forget)
}

// violate records a violation of a key. The lock is held.
func (s *simulation) violate(key, format string, args ...any) {
	s.note(key, "VIOLATION: "+format, args...)
	s.violations = append(s.violations, key)
}

// say records an event of a key.
func (s *simulation) say(key, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(key, format, args...)
}

// boot starts a process, in the place of the one that crashed.
func (s *simulation) boot(place int) *simProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actors++
	n := &network{
		Store: s.store, seed: s.seed + s.actors<<32, faulty: &s.faulty, lost: &s.lost, dead: make(chan struct{}),
	}
	s.networks = append(s.networks, n)
	engine, err := reprise.New(n, reprise.Config{Lease: s.lease, ClaimTimeout: budget, CompleteTimeout: budget, MaxRun: s.maxRun, Observer: s})
	if err != nil {
		panic(err) // a good configuration
	}
	s.running[place] = &simProcess{engine, n, fmt.Sprintf("process %d", s.actors)}
	return s.running[place]
}

// crash ends a process at once: its messages are dropped from then on, and its handlers
// are gone.
func (s *simulation) crash(place int) {
	s.mu.Lock()
	p := s.running[place]
	s.note("", "%s crashes", p.name)
	close(p.net.dead)
	for key, running := range s.handlers {
		for h := range running {
			if h.process == p {
				s.unsure[key] = s.unsure[key] || s.overran(h)
				delete(running, h)
			}
		}
	}
	s.mu.Unlock()
	s.crashes.Add(1)
	ended, end := context.WithCancel(context.Background())
	end()
	_ = p.Close(ended) // its memory is given back; its claims lapse
	s.boot(place)
}

// harm pauses and crashes processes until its time is up.
func (s *simulation) harm() {
	d, until := newDice(s.seed, 1<<32), time.Now().Add(s.chaos)
	for time.Now().Before(until) {
		inTime(2*time.Second + d.upTo(10*time.Second))
		place := d.below(s.processes)
		if d.percent(25) {
			s.crash(place)
			continue
		}
		s.mu.Lock()
		pause := s.lease + d.upTo(2*s.lease)
		s.note("", "%s pauses for %v", s.running[place].name, pause)
		s.running[place].net.pause(pause)
		s.mu.Unlock()
		s.pauses.Add(1)
	}
	s.faulty.Store(false)
}

// wakes notes where a process does something while it is paused. The lock is held.
func (s *simulation) wakes(key string, p *simProcess) {
	if left := p.net.pauseLeft(); left > 0 && !p.net.isDead() {
		s.violate(key, "%s is paused for another %v", p.name, left)
	}
}

// enter notes that a handler starts, and looks whether it is the only one that believes
// to hold the key.
func (s *simulation) enter(key string, h *simHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers[key] == nil {
		s.handlers[key] = make(map[*simHandler]bool)
	}
	s.handlers[key][h] = true
	s.executions[key]++
	s.note(key, "%s runs it", h.process.name)
	s.wakes(key, h.process)
	if s.unresolved[key] {
		s.violate(key, "it runs, and its outcome is unknown")
	}
	believing := 0
	for h := range s.handlers[key] {
		if h.ctx.Err() == nil {
			believing++
		}
	}
	if believing > 1 {
		s.violate(key, "%d holders believe", believing)
	}
}

func (s *simulation) leave(key string, h *simHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(key, "the run of %s ends, %v", h.process.name, context.Cause(h.ctx))
	s.wakes(key, h.process)
	s.unsure[key] = s.unsure[key] || s.overran(h)
	delete(s.handlers[key], h)
}

// overran reports whether the record of a handler may say that it ran too long.
func (s *simulation) overran(h *simHandler) bool { return time.Since(h.asked) >= s.maxRun+s.lease }

// mayBeUnknown reports whether a record of the key may say so.
func (s *simulation) mayBeUnknown(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.handlers[key] {
		if s.overran(h) {
			return true
		}
	}
	return s.unsure[key]
}

// recorded notes a result that the store keeps. There is one for each key.
func (s *simulation) recorded(key, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.answers[key]; ok && first != answer {
		s.violate(key, "it was answered %q and %q", first, answer)
	}
	s.answers[key] = answer
	s.note(key, "answered %q", answer)
}

// handle runs a handler to its end, and reports false when its process crashed under it.
// Some ignore their context.
func (s *simulation) handle(d *dice, key string, p *simProcess, a *reprise.Attempt, asked time.Time) bool {
	h := &simHandler{a.Context(), p, asked}
	s.enter(key, h)
	defer s.leave(key, h)
	ctx := h.ctx
	if d.percent(50) {
		ctx = context.WithoutCancel(ctx)
	}
	work := d.upTo(time.Second)
	if d.percent(50) {
		work = d.upTo(4 * s.lease)
	}
	p.net.pass(ctx, work)
	p.net.awake(d) // it continues, or finds that it was cancelled, not before
	return !p.net.isDead()
}

// request sends one request of a client, and reports whether that was its last.
func (s *simulation) request(ctx context.Context, d *dice, op reprise.Operation, name string) bool {
	s.mu.Lock()
	p := s.running[d.below(s.processes)]
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second+d.upTo(time.Minute))
	defer cancel()
	op.Wait = d.upTo(20 * time.Second)
	s.say(op.Key, "%s asks %s", name, p.name)
	p.net.awake(d)
	asked := time.Now()
	res, err := p.Begin(ctx, op)
	p.net.awake(d)
	s.say(op.Key, "%s begins for %s: %v %v", p.name, name, res.Outcome, err)
	switch {
	case err != nil, res.Outcome == reprise.InProgress:
		return false
	case res.Outcome == reprise.Replayed:
		s.replays.Add(1)
		s.recorded(op.Key, string(res.Payload))
		return true
	case res.Outcome == reprise.Lapsed && (op.Preset == reprise.AtMostOnce || s.mayBeUnknown(op.Key)):
		s.operate(d, op) //nolint:contextcheck // an operator has no request
		return true      // until an operator resolves it
	case res.Outcome != reprise.Claimed:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.violate(op.Key, "it was answered %v", res.Outcome)
		return true
	case !s.handle(d, op.Key, p, res.Attempt, asked): //nolint:contextcheck // a handler's context is its attempt's
		return false
	case d.percent(5):
		s.doesNotKnow(d, op.Key, p, res.Attempt) //nolint:contextcheck // the engine bounds the end of an attempt
		return false
	case op.Preset == reprise.Recoverable && d.percent(10):
		_ = res.Attempt.Release() //nolint:contextcheck // the engine bounds the end of an attempt
		p.net.awake(d)
		return false
	}
	if res.Attempt.View().Number() > 1 {
		s.overs.Add(1)
	}
	end, err := res.Attempt.Complete(reprise.Completion{Payload: []byte(name)}) //nolint:contextcheck // the engine bounds the end of an attempt
	p.net.awake(d)
	s.say(op.Key, "%s completes for %s: %v", p.name, name, end.End)
	switch {
	case err != nil:
		panic(err) // it was not ended before
	case end.End == reprise.EndRecorded:
		s.recorded(op.Key, name)
		return true
	case end.End == reprise.EndSuperseded:
		s.late.Add(1)
		s.recorded(op.Key, string(end.Payload))
		return true
	case end.End == reprise.EndContested, end.End == reprise.EndUnknown:
		s.late.Add(1)
	}
	return false
}

// doesNotKnow ends an attempt whose handler does not know the outcome.
func (s *simulation) doesNotKnow(d *dice, key string, p *simProcess, a *reprise.Attempt) {
	s.mu.Lock()
	s.unsure[key] = true
	s.mu.Unlock()
	err := a.Unknown("drawn")
	p.net.awake(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.suspend(key, "its handler said so")
	}
}

// client retries its request until it is answered for good.
func (s *simulation) client(ctx context.Context, key, n int) {
	d := newDice(s.seed, uint64(1<<40+key*s.clients+n))
	op := reprise.Operation{Scope: scope, Key: "key " + strconv.Itoa(key), Preset: reprise.Recoverable}
	if key%3 == 0 {
		op.Preset = reprise.AtMostOnce
	}
	inTime(s.chaos*time.Duration(key)/time.Duration(s.keys) + d.upTo(5*time.Second)) // so that those of a key meet
	for try := 1; !s.request(ctx, d, op, fmt.Sprintf("client %d, try %d", n, try)); try++ {
		inTime(d.upTo(2 * time.Second))
		if ctx.Err() != nil {
			s.mu.Lock()
			s.violate(op.Key, "no answer in the end")
			s.mu.Unlock()
			return
		}
	}
}

// simulate runs the universe of a seed and returns it with its records.
func simulate(t *testing.T, seed uint64) *simulation {
	t.Helper()
	s := &simulation{seed: seed, universe: draw(seed)}
	if seed%64 == 0 {
		runtime.GC()
	}
	chance.Seed(seed)
	synctest.Test(t, func(t *testing.T) {
		s.chronicle = newChronicle()
		s.store = memstore.New()
		s.running = make([]*simProcess, s.processes)
		s.handlers, s.executions, s.answers = make(map[string]map[*simHandler]bool), make(map[string]int), make(map[string]string)
		s.unsure, s.unresolved = make(map[string]bool), make(map[string]bool)
		s.faulty.Store(true)
		for place := range s.running {
			s.boot(place)
		}
		ctx, cancel := context.WithTimeout(t.Context(), s.chaos+s.patience)
		defer cancel()
		var all sync.WaitGroup
		all.Go(s.harm)
		for key := range s.keys {
			for n := range s.clients {
				all.Go(func() { s.client(ctx, key, n) })
			}
		}
		all.Wait()
		for _, p := range s.running {
			if err := p.Close(ctx); err != nil {
				s.violate("", "%v", err)
			}
		}
		for _, n := range s.networks {
			n.late.Wait()
		}
	})
	for key, n := range s.executions {
		if place, _ := strconv.Atoi(strings.TrimPrefix(key, "key ")); place%3 == 0 && n > 1 {
			s.violate(key, "it ran %d times, at most once", n)
		}
	}
	return s
}
