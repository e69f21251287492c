package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// world is a bubble in which a draw runs: one store, the processes over it, and
// everything that happened, for the model to judge.
type world struct {
	draw   *draw
	broken func(store.Store) store.Store // the store as its processes find it
	epoch  time.Time
	store  *memstore.Store
	tasks  sync.WaitGroup // requests, and processes that end their work

	mu       sync.Mutex
	live     [places]*process
	started  []*process
	requests []*request
	runs     []*run
	acts     []operatorAct
	history  []string
	findings []string
	tally    map[string]int
}

func (w *world) now() time.Duration { return time.Since(w.epoch) }

// inTime lets d pass, which takes no time in a bubble.
func inTime(d time.Duration) { <-time.After(d) }

// note adds a line to the history. The lock is held.
func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%12v  %s", w.now(), fmt.Sprintf(format, args...)))
}

// find adds a finding. The lock is held. Its first words, up to the colon, name its kind.
func (w *world) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("FINDING: %s", text)
	w.findings = append(w.findings, text)
}

var simulated int // so far, by one goroutine

//go:linkname seedJitter github.com/reprise-go/reprise/core/internal/chance.Seed
func seedJitter(uint64) // no user of the engine may fix its jitter, so that is not public

// run runs the draw in a separate bubble, over a store that is broken unless that is nil.
func (c *draw) run(t *testing.T, broken func(store.Store) store.Store) *world {
	t.Helper()
	if simulated++; simulated%64 == 0 {
		runtime.GC()
	}
	seedJitter(c.seed)
	w := &world{draw: c, broken: broken, tally: map[string]int{}}
	if broken == nil {
		w.broken = func(right store.Store) store.Store { return right }
	}
	synctest.Test(t, func(*testing.T) {
		w.epoch = time.Now()
		var err error
		if w.store, err = memstore.NewBounded(settingsOf(c.store).store); err != nil {
			panic(err) // the bounds that are drawn are valid
		}
		for place := range w.live {
			w.boot(place, place)
		}
		for _, s := range c.steps {
			inTime(s.at - w.now())
			s.do(w)
		}
		w.finish()
	})
	return w
}

// defaults is the service without options.
const defaults = -1

// boot starts the service that was drawn for a place, or the default one if the drawn
// one is refused.
func (w *world) boot(place, next int) {
	var options service
	name := "the last process"
	if next != defaults {
		name, options = fmt.Sprintf("process %d, policy %d", place, next), w.draw.services[next]
	}
	p, err := w.start(name, options)
	if err != nil { // as some are that lost an option: see minimal
		w.tally["refused"]++
		name += " (refused)"
		if p, err = w.start(name, nil); err != nil {
			panic(err) // the default
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[place] = p
	w.started = append(w.started, p)
	w.note("%s starts", name)
}

// restart replaces a process: after a crash, or as a deployment does, which starts the
// next one while the former ends its work.
func (w *world) restart(place, next int, crash bool) {
	w.mu.Lock()
	old := w.live[place]
	old.closing = true
	w.note("%s ends, crashed %v", old.name, crash)
	w.mu.Unlock()
	if crash {
		old.crash()
	} else {
		w.tasks.Go(func() { w.drain(old, 5*time.Second) })
	}
	w.boot(place, next)
}

func (w *world) drain(p *process, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.guard.Close(ctx)
}

// finish heals the store, lets everything end, asks for each operation once more, and
// looks at the records that the store keeps.
func (w *world) finish() {
	w.tasks.Wait()
	for _, p := range w.started {
		p.faults.Clear()
		p.faults.LetGo()
	}
	w.quiet()
	w.boot(0, len(w.draw.services)-1) // by a policy that was drawn, which meets what lapsed
	w.probe()
	w.quiet()
	w.boot(0, defaults)
	w.judgeEnd(w.probe())
	w.quiet()
	synctest.Wait()
	w.judgeStore()
	for _, p := range w.started {
		w.judgeCounts(p)
	}
}

// quiet waits for longer than leases and the pauses of the background take, ends the
// processes, and waits for what they left behind.
func (w *world) quiet() {
	inTime(15 * time.Second)
	for _, p := range w.started {
		w.drain(p, time.Hour)
		p.faults.Close()
	}
	inTime(time.Minute)
}

// probe asks the first process for each operation once more.
func (w *world) probe() (probes []*request) {
	w.mu.Lock()
	seen := map[store.ID]bool{}
	for _, q := range w.requests {
		policy := w.live[0].policy(q)
		if id := q.id(policy); q.scope != "" && q.keyed(policy) && !seen[id] {
			seen[id] = true
			probe := q.again()
			probe.place, probe.leaves, probe.retries, probe.program = 0, 0, 0, program{status: 201, ends: returns}
			probes = append(probes, probe)
		}
	}
	w.mu.Unlock()
	for _, q := range probes {
		w.send(q)
	}
	w.tasks.Wait()
	return probes
}

// judgeEnd judges the last responses: nothing can be in progress any more.
func (w *world) judgeEnd(probes []*request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range probes {
		if q.answer != nil && q.answer.code == string(protocol.CodeInProgress) {
			w.find("stuck: the key %q is still in progress long after everything ended", q.key)
		}
	}
}

// began judges a run, and keeps it.
func (w *world) began(ctx context.Context, q *request, view reprise.AttemptView, body string) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &run{
		n: len(w.runs) + 1, request: q, process: q.process, id: view.ID(), ctx: ctx,
		attempt: view.Number(), fence: view.Fence(), unprotected: view.Number() == 0, start: w.now(),
	}
	r.body = bodyOf(r.n, q.program)
	r.policy, _ = q.process.decides(q)
	w.note("run %d of %q by %s, attempt %d", r.n, q.key, r.process.name, r.attempt)
	w.judgeRun(r, body)
	q.run = r
	w.runs = append(w.runs, r)
	return r
}

func (w *world) ended(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.end, r.crashed = w.now(), r.process.isDead()
	w.note("run %d ends: %v", r.n, context.Cause(r.ctx))
	if ran, most := r.end-r.start, cmp.Or(r.process.settings.guard.Engine.MaxRun, time.Hour); most > 0 && ran > most && r.believes() && !r.crashed {
		w.find("forever: run %d ran for %v and was not told to stop", r.n, ran)
	}
	if p := r.process; errors.Is(context.Cause(r.ctx), store.ErrLeaseLost) && !p.harmed && !p.closing && !r.unprotected {
		w.find("lease: run %d lost it for no reason (R39)", r.n)
	}
	r.returned, r.told = true, r.ctx.Err() != nil
}

// answered judges a response, and keeps it.
func (w *world) answered(q *request, a *answer) {
	q.answer = a
	w.note("response to %q: %d %s %.60q replayed=%v mark=%q", q.key, a.status, a.code, a.body, a.replayed, a.mark())
	w.judgeAnswer(q, a)
}

// String tells what happened.
func (w *world) String() string {
	return w.draw.String() + strings.Join(w.history, "\n")
}
