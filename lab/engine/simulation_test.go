package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// The size of a simulation, in simulated time where it is one.
const (
	simProcesses = 3
	simKeys      = 40 // every third at most once
	simClients   = 3  // for each key
	simChaos     = 10 * time.Minute
	simPatience  = time.Hour // for everything to come to an end after the chaos
)

// simulation is a bubble with processes that pause and crash over a lossy network, and
// clients that retry until they have their answer. It notes what must never be.
type simulation struct {
	seed    uint64
	store   *memstore.Store
	faulty  atomic.Bool
	lost    atomic.Int64
	pauses  atomic.Int64
	crashes atomic.Int64
	replays atomic.Int64
	overs   atomic.Int64 // takeovers
	late    atomic.Int64 // completions that came too late

	mu         sync.Mutex
	actors     uint64
	processes  [simProcesses]*simProcess
	handlers   map[string]map[*simHandler]bool // that run, of a key
	executions map[string]int
	answers    map[string]string // that were recorded
	violations []string
}

// simProcess is one process, until it crashes.
type simProcess struct {
	*reprise.Engine
	net *network
}

// simHandler is a handler that runs.
type simHandler struct {
	ctx     context.Context // cancelled when it must not believe any more
	process *simProcess
}

func (s *simulation) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// boot starts a process, in the place of the one that crashed.
func (s *simulation) boot(place int) *simProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actors++
	n := &network{
		Store: s.store, dice: newDice(s.seed, s.actors), faulty: &s.faulty, lost: &s.lost, dead: make(chan struct{}),
	}
	engine, err := reprise.New(n, reprise.Config{Lease: engineLease})
	if err != nil {
		panic(err) // a constant configuration
	}
	s.processes[place] = &simProcess{engine, n}
	return s.processes[place]
}

// crash ends a process at once: nothing that it does gets out any more, and its handlers
// are gone.
func (s *simulation) crash(place int) {
	s.mu.Lock()
	p := s.processes[place]
	close(p.net.dead)
	for _, running := range s.handlers {
		for h := range running {
			if h.process == p {
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

// chaos pauses and crashes processes until its time is up.
func (s *simulation) chaos() {
	d, until := newDice(s.seed, 1<<32), time.Now().Add(simChaos)
	for time.Now().Before(until) {
		inTime(2*time.Second + d.upTo(10*time.Second))
		place := d.below(simProcesses)
		if d.percent(25) {
			s.crash(place)
			continue
		}
		s.mu.Lock()
		s.processes[place].net.stall(engineLease + d.upTo(2*engineLease))
		s.mu.Unlock()
		s.pauses.Add(1)
	}
	s.faulty.Store(false)
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
	believing := 0
	for h := range s.handlers[key] {
		if h.ctx.Err() == nil {
			believing++
		}
	}
	if believing > 1 {
		s.violate("%s has %d holders that believe", key, believing)
	}
}

func (s *simulation) leave(key string, h *simHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handlers[key], h)
}

// recorded notes an answer that the store keeps. There is one for each key.
func (s *simulation) recorded(key, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.answers[key]; ok && first != answer {
		s.violate("%s was answered %q and %q", key, first, answer)
	}
	s.answers[key] = answer
}

// handle runs a handler to its end, and reports false when its process crashed under it.
// Some do not look at their context.
func (s *simulation) handle(d *dice, key string, p *simProcess, a *reprise.Attempt) bool {
	h := &simHandler{a.Context(), p}
	s.enter(key, h)
	defer s.leave(key, h)
	ctx := h.ctx
	if d.percent(50) {
		ctx = context.WithoutCancel(ctx)
	}
	work := d.upTo(time.Second)
	if d.percent(50) {
		work = d.upTo(4 * engineLease)
	}
	p.net.pass(ctx, work)
	select {
	case <-p.net.dead:
		return false
	default:
		return true
	}
}

// request sends one request of a client, and reports whether that was its last.
func (s *simulation) request(ctx context.Context, d *dice, op reprise.Operation, name string) bool {
	s.mu.Lock()
	p := s.processes[d.below(simProcesses)]
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second+d.upTo(time.Minute))
	defer cancel()
	op.Wait = d.upTo(20 * time.Second)
	res, err := p.Begin(ctx, op)
	switch {
	case err != nil, res.Outcome == reprise.InProgress:
		return false
	case res.Outcome == reprise.Completed:
		s.replays.Add(1)
		s.recorded(op.Key, string(res.Payload))
		return true
	case res.Outcome == reprise.Lapsed && op.Preset == reprise.AtMostOnce:
		return true // until an operator resolves it
	case res.Outcome != reprise.Claimed:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.violate("%s was answered %v", op.Key, res.Outcome)
		return true
	case !s.handle(d, op.Key, p, res.Attempt): //nolint:contextcheck // a handler's context is its attempt's
		return false
	case op.Preset == reprise.Recoverable && d.percent(10):
		_ = res.Attempt.Release() //nolint:contextcheck // the engine bounds the end of an attempt
		return false
	}
	if res.Attempt.View().Number() > 1 {
		s.overs.Add(1)
	}
	end, err := res.Attempt.Complete(reprise.Completion{Payload: []byte(name)}) //nolint:contextcheck // the engine bounds the end of an attempt
	switch {
	case err != nil:
		panic(err) // it was not ended before
	case end.Status == reprise.Recorded:
		s.recorded(op.Key, name)
		return true
	case end.Status == reprise.Superseded:
		s.late.Add(1)
		s.recorded(op.Key, string(end.Payload))
		return true
	case end.Status == reprise.Contested:
		s.late.Add(1)
	}
	return false
}

// client retries its request until it is answered for good.
func (s *simulation) client(ctx context.Context, key, n int) {
	d := newDice(s.seed, uint64(1<<40+key*simClients+n))
	op := reprise.Operation{Scope: "tenant", Key: "key " + strconv.Itoa(key), Preset: reprise.Recoverable}
	if key%3 == 0 {
		op.Preset = reprise.AtMostOnce
	}
	inTime(simChaos*time.Duration(key)/simKeys + d.upTo(5*time.Second)) // so that those of a key meet
	for try := 1; !s.request(ctx, d, op, fmt.Sprintf("client %d, try %d", n, try)); try++ {
		inTime(d.upTo(2 * time.Second))
		if ctx.Err() != nil {
			s.mu.Lock()
			s.violate("%s: no answer in the end", op.Key)
			s.mu.Unlock()
			return
		}
	}
}

// simulate runs one simulation and returns it with what it noted.
func simulate(t *testing.T, seed uint64) *simulation {
	s := &simulation{seed: seed}
	synctest.Test(t, func(t *testing.T) {
		s.store = memstore.New()
		s.handlers, s.executions, s.answers = make(map[string]map[*simHandler]bool), make(map[string]int), make(map[string]string)
		s.faulty.Store(true)
		for place := range s.processes {
			s.boot(place)
		}
		ctx, cancel := context.WithTimeout(t.Context(), simChaos+simPatience)
		defer cancel()
		var all sync.WaitGroup
		all.Go(s.chaos)
		for key := range simKeys {
			for n := range simClients {
				all.Go(func() { s.client(ctx, key, n) })
			}
		}
		all.Wait()
		for _, p := range s.processes {
			if err := p.Close(ctx); err != nil {
				s.violate("%v", err)
			}
		}
	})
	for key, n := range s.executions {
		if place, _ := strconv.Atoi(strings.TrimPrefix(key, "key ")); place%3 == 0 && n > 1 {
			s.violate("%s ran %d times, at most once", key, n)
		}
	}
	return s
}

// TestEngineSimulation runs processes that pause and crash over a network that loses
// requests and replies, or delivers them late. Its seed is in the name of each subtest,
// and REPRISE_SEED runs that one alone. It fixes the faults and the clients; the engine's
// own jitter and the scheduler it does not.
func TestEngineSimulation(t *testing.T) {
	t.Parallel()
	runs, seeds := 100, rand.Uint64
	if text := os.Getenv("REPRISE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("REPRISE_SEED: %v", err)
		}
		runs, seeds = 1, func() uint64 { return seed }
	}
	var total simTally
	until := time.Now().Add(labtest.Soak(t))
	for run := 0; !t.Failed() && (run < runs || time.Now().Before(until)); run++ {
		seed := seeds()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := simulate(t, seed)
			for _, v := range s.violations {
				t.Error(v)
			}
			total.add(s)
		})
	}
	t.Logf("%+v", total)
	if least := min(total.Lost, total.Pauses, total.Crashes, total.Takeovers, total.Replays, 20*total.Late); runs > 1 && least < 100 {
		t.Error("that is not enough to show anything")
	}
}

// simTally counts what simulations did.
type simTally struct {
	Lost, Pauses, Crashes, Executions, Takeovers, Late, Replays, Violations int64
}

func (c *simTally) add(s *simulation) {
	c.Lost += s.lost.Load()
	c.Pauses += s.pauses.Load()
	c.Crashes += s.crashes.Load()
	c.Takeovers += s.overs.Load()
	c.Late += s.late.Load()
	c.Replays += s.replays.Load()
	c.Violations += int64(len(s.violations))
	for _, n := range s.executions {
		c.Executions += int64(n)
	}
}
