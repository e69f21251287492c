package lincheck

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// deployment is a store as a service has it: several processes over one set of records.
type deployment struct {
	stores    []store.Store // one a process
	atomic    bool
	exclusive bool // an attempt is one client's, which ends it before it begins another
	engines   bool // the engine renews, and releases claims whose handler may not run
	repeats   bool // calls are repeated inside: by a cluster's client until it knows the nodes, by Acked to confirm on another connection
	asksAgain bool // a claim whose result came when most of its lease was over is repeated
	clock     clock
	pace      pace
	patience  time.Duration // how long a cancelled call may go on; calls take less
}

// pace is how fast the clients of a deployment are, and how long leases and validities
// last. The zero value is that of a store.
type pace struct {
	lease   time.Duration // of an engine
	calls   int           // of each client
	between time.Duration // two calls, at most
	stalls  bool          // some clients sleep for seconds while they hold claims
	unit    time.Duration // leases and validities are multiples of it; zero: they are milliseconds and parts of them
	ids     int           // zero: those of a store
}

// executesTwice reports whether a store may have executed a claim twice before it
// returned: each time so that no repetition changes the effect of the first.
func (d *deployment) executesTwice(in input, out output) bool {
	if in.kind != claim || d.repeats {
		return in.kind == claim
	}
	waited := out.unknown || out.began.from != out.began.to // and so its lease was made whole, or may have been
	return !d.atomic && !d.engines && (d.clock.waits && waited || d.asksAgain && out.at.to-out.at.from > in.lease/10*9)
}

// The size of one history.
const (
	clients   = 8
	calls     = 120 // of each client
	ids       = 6
	deadline  = 30 * time.Second // for the checker, of one ID
	histories = 2                // of each deployment; more in a soak

	mostHistories = 10 // until they have met everything that they have to
)

// everything has the situations that the histories of a store must meet, so that they are
// significant.
var everything = []string{
	"claimed", "takeover", "in-progress", "completed", "mismatch", "renewal renewed", "renewal lost", "renewal completed",
	"complete", "refused completion", "release", "lapsed", "unknown", "refused unknown", "unknown claim", "unknown complete",
}

// recorder collects the operations of one history, by ID.
type recorder struct {
	start time.Time
	mu    sync.Mutex
	byID  map[store.ID][]porcupine.Operation
	tally map[string]int
	wrong []error

	endless int // IDs for which the checker did not come to an end
}

// now reads the machine's clock, which is that of the servers too, in microseconds.
func (h *recorder) now() time.Duration { return h.at(time.Now()) }

func (h *recorder) at(t time.Time) time.Duration {
	return time.Duration(t.UnixMicro()-h.start.UnixMicro()) * time.Microsecond
}

func (h *recorder) add(client int, in input, out output) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ends := out.at.to
	h.byID[in.id] = append(h.byID[in.id], porcupine.Operation{
		ClientId: client, Input: in, Call: int64(out.at.from), Output: out, Return: int64(ends),
	})
	switch {
	case out.refused != "":
		h.tally["unavailable"]++
	case out.unknown:
		h.tally["unknown "+string(in.kind)]++
	case in.kind == claim:
		what := out.outcome.String()
		if out.outcome == store.Claimed && out.attempt > 1 {
			what = "takeover"
		}
		h.tally[what]++
	case in.kind == renew:
		h.tally["renewal "+out.renewal.String()]++
	case in.kind == complete && !out.accepted:
		h.tally["refused completion"]++
	case in.kind == unknown && !out.accepted:
		h.tally["refused unknown"]++
	default:
		h.tally[string(in.kind)]++
	}
}

// client is one caller of a store.
type client struct {
	*recorder
	number int
	store  store.Store
	dice   *rand.Rand
	d      *deployment
	ids    []store.ID
	owned  []held // the attempts that it began and may end
	others *strangers

	underway *underway // of all clients of the store
}

type held struct {
	id    store.ID
	owner store.Owner
	print store.Fingerprint
	keep  store.Policy // of its claim
}

// strangers are the attempts of all clients, so that one may act in the name of another.
type strangers struct {
	mu  sync.Mutex
	all []held
}

func (s *strangers) add(a held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, a)
}

func (s *strangers) pick(dice *rand.Rand) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return held{}, false
	}
	return s.all[len(s.all)-1-dice.IntN(min(len(s.all), 20))], true
}

// run makes the client's calls.
func (c *client) run(ctx context.Context) {
	for range cmp.Or(c.d.pace.calls, calls) {
		c.once(ctx)
		between := cmp.Or(c.d.pace.between, 4*time.Millisecond)
		if c.d.pace.stalls && c.dice.IntN(100) < 15 {
			between = 5 * time.Second
		}
		time.Sleep(c.upTo(between)) //nolint:forbidigo // clients take their time
	}
	for _, a := range c.owned { // so that no transaction is left open
		c.call(ctx, input{kind: release, id: a.id, owner: a.owner})
	}
}

// once makes one call.
func (c *client) once(ctx context.Context) {
	roll := c.dice.IntN(100)
	if c.d.exclusive && len(c.owned) > 0 && roll < 50 {
		roll = 50 + c.dice.IntN(50)
	}
	if roll < 50 {
		c.begin(ctx)
		return
	}
	a, ok := c.others.pick(c.dice)
	if mine := len(c.owned); mine > 0 && c.dice.IntN(100) < 75 || c.d.exclusive && mine > 0 {
		a, ok = c.owned[c.dice.IntN(mine)], true
	} else if c.d.exclusive {
		return
	}
	if !ok {
		return
	}
	switch {
	case roll < 65:
		in := input{kind: complete, id: a.id, owner: a.owner, print: a.print, policy: c.policy(10, 60), payload: fmt.Sprintf("%d of %d", c.dice.Uint32(), c.number)}
		if c.d.engines {
			in.policy = a.keep // an engine was told when it claimed
		}
		c.call(ctx, in)
		c.forget(a)
	case roll < 75 && c.dice.IntN(2) == 0 && !c.d.exclusive:
		c.forget(a) // and so it lapses
	case roll < 90 && !c.d.exclusive:
		c.call(ctx, input{kind: renew, id: a.id, owner: a.owner, lease: c.between(5, 40)})
	case roll >= 97:
		out := c.call(ctx, input{kind: unknown, id: a.id, owner: a.owner})
		if out.accepted || c.d.engines { // otherwise it is its owner's to say so again, or to release; an engine does
			c.forget(a)
		}
	default:
		c.call(ctx, input{kind: release, id: a.id, owner: a.owner})
		c.forget(a)
	}
}

func (c *client) forget(a held) {
	if c.dice.IntN(100) < 20 && !c.d.exclusive {
		return // and so it says it again
	}
	for i := range c.owned {
		if c.owned[i] == a {
			c.owned = append(c.owned[:i], c.owned[i+1:]...)
			return
		}
	}
}

func (c *client) between(least, most int) time.Duration {
	if unit := c.d.pace.unit; unit > 0 {
		return time.Duration(least+c.dice.IntN(most-least)) * unit
	}
	return time.Duration(least*1000+c.dice.IntN((most-least)*1000)) * time.Microsecond
}

func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(most.Microseconds())) * time.Microsecond
}

// begin claims an ID, as a new owner or as one that claimed before.
func (c *client) begin(ctx context.Context) {
	in := input{
		kind: claim, id: c.ids[c.dice.IntN(len(c.ids))], owner: c.newOwner(), lease: c.between(5, 40), policy: c.policy(20, 120),
		takeover: c.dice.IntN(100) < 75,
	}
	if c.dice.IntN(100) < 10 {
		in.print[0] = 1
	}
	if c.dice.IntN(100) < 30 {
		in.attempts = 3
	}
	if c.d.engines {
		in.lease, in.attempts, in.takeover = c.d.pace.lease, 0, true
		if c.d.pace.stalls {
			in.policy = c.policy(3000, 6000)
		}
	}
	if n := len(c.owned); n > 0 && c.dice.IntN(100) < 25 {
		a := c.owned[c.dice.IntN(n)]
		in.id, in.owner, in.print = a.id, a.owner, a.print
	}
	if a, ok := c.others.pick(c.dice); ok && !c.d.exclusive && c.dice.IntN(100) < 5 {
		in.id, in.owner, in.print = a.id, a.owner, a.print
	}
	out := c.call(ctx, in)
	if a := (held{in.id, in.owner, in.print, in.policy}); out.unknown || out.outcome == store.Claimed {
		c.owned = append(c.owned, a)
		c.others.add(a)
	}
}

// policy returns a policy with a retention in a range of milliseconds, half of the time
// with a horizon.
func (c *client) policy(least, most int) store.Policy {
	p := store.Policy{AtMostOnce: c.dice.IntN(100) < 20, Retention: c.between(least, most)}
	if c.dice.IntN(2) == 0 {
		p.Horizon = c.between(least, most)
	}
	return p
}

func (c *client) newOwner() (o store.Owner) {
	binary.BigEndian.PutUint64(o[:], c.dice.Uint64())
	binary.BigEndian.PutUint64(o[8:], uint64(c.number)+1)
	return o
}

// call makes a call, of which some are cancelled and some lose their result, and records
// it.
func (c *client) call(ctx context.Context, in input) output {
	in.atomic, in.fleeting = c.d.atomic, c.d.atomic || c.d.engines
	loses := c.dice.IntN(100) < 5
	if c.dice.IntN(100) < 4 {
		short, cancel := context.WithTimeout(ctx, time.Duration(c.dice.IntN(1500))*time.Microsecond)
		defer cancel()
		ctx = short
	}
	from := c.now()
	age := c.underway.begin(in, from)
	out, err := c.ask(ctx, in)
	out.at = window{from, c.now() + time.Microsecond}
	c.underway.end(in, from)
	switch {
	case in.kind != claim || out.outcome == store.Claimed:
	case out.outcome == store.InProgress, out.outcome == store.Mismatch:
		out.at.from = age.own
	case c.d.engines:
		out.at.from = age.shared
	}
	out.tick, out.late = c.d.clock.tick, c.d.clock.late
	if out.outcome == store.Claimed {
		out.began = c.d.clock.began(c.start, out.fence, out.at.to)
	}
	switch {
	case err == nil && !loses:
	case err == nil: // it took place, and its result is lost
		out = output{at: out.at, tick: out.tick, late: out.late, unknown: true}
	case (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy)) && !c.d.engines:
		c.add(c.number, in, output{at: out.at, refused: err.Error()})
		return output{}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrNotReplicated):
		out = output{at: window{from, out.at.to + c.d.patience}, tick: out.tick, late: out.late, unknown: true}
	case errors.Is(err, store.ErrNotApplied):
		out.accepted = false
		in.kind, out = release, output{at: out.at} // the transaction is gone
	default:
		c.mu.Lock()
		c.wrong = append(c.wrong, fmt.Errorf("%s: %w", in.kind, err))
		c.mu.Unlock()
		return output{}
	}
	c.add(c.number, in, out)
	if c.d.executesTwice(in, out) {
		c.add(c.number, in, output{at: out.at, tick: out.tick, late: out.late, unknown: true}) // the execution before the one that was answered
	}
	return out
}

// ask translates a call to the store and its result back.
func (c *client) ask(ctx context.Context, in input) (output, error) {
	switch in.kind {
	case claim:
		res, err := c.store.Claim(ctx, store.ClaimRequest{
			ID: in.id, Owner: in.owner, Fingerprint: in.print, Lease: in.lease, Policy: in.policy, Takeover: in.takeover, MaxAttempts: in.attempts,
		})
		lapsed := res.Outcome == store.Claimed && !res.Atomic && res.Remaining <= 0
		return output{
			answer: answer{outcome: res.Outcome, attempt: res.Attempt, payload: string(res.Payload)},
			fence:  res.Fence, lapsed: lapsed,
			remaining: res.Remaining, measured: c.d.clock.tells(res, lapsed) && !in.atomic,
		}, err
	case renew:
		res, err := c.store.Renew(ctx, []store.RenewRequest{{ID: in.id, Owner: in.owner, Lease: in.lease}})
		if err != nil {
			return output{}, err
		}
		return output{answer: answer{renewal: res[0]}}, nil
	case complete:
		err := c.store.Complete(ctx, store.CompleteRequest{ID: in.id, Owner: in.owner, Payload: []byte(in.payload), Policy: in.policy})
		if errors.Is(err, store.ErrLeaseLost) {
			return output{}, nil
		}
		return output{answer: answer{accepted: err == nil}}, err
	case unknown:
		err := c.store.Unknown(ctx, store.UnknownRequest{ID: in.id, Owner: in.owner, Reason: "a history"})
		if errors.Is(err, store.ErrLeaseLost) {
			return output{}, nil
		}
		return output{answer: answer{accepted: err == nil}}, err
	default:
		return output{}, c.store.Release(ctx, in.id, in.owner)
	}
}

// history runs clients on a deployment, and returns their calls and results.
func history(t *testing.T, d *deployment, seed uint64) *recorder {
	t.Helper()
	h := &recorder{start: time.Now(), byID: map[store.ID][]porcupine.Operation{}, tally: map[string]int{}}
	dice := rand.New(rand.NewPCG(seed, 0))
	names := make([]store.ID, cmp.Or(d.pace.ids, ids))
	for i := range names {
		for j := range names[i] {
			names[i][j] = byte(dice.Uint32())
		}
	}
	var group sync.WaitGroup
	others := &strangers{}
	onTheirWay := map[store.Store]*underway{}
	for _, st := range d.stores {
		onTheirWay[st] = newUnderway(d)
	}
	for n := range clients {
		c := &client{
			recorder: h, number: n, store: d.stores[n%len(d.stores)], dice: rand.New(rand.NewPCG(seed, uint64(n)+1)),
			d: d, ids: names, others: others, underway: onTheirWay[d.stores[n%len(d.stores)]],
		}
		group.Go(func() { c.run(t.Context()) })
	}
	group.Wait()
	for _, store := range d.stores {
		if e, ok := store.(interface{ complement(h *recorder) }); ok {
			e.complement(h)
		}
	}
	return h
}

// check reports the first ID of a history that no order of its operations explains.
func (h *recorder) check(tb testing.TB, seed uint64) (explained bool) {
	tb.Helper()
	for _, err := range h.wrong {
		tb.Errorf("a call answered what no model knows: %v", err)
	}
	for id, operations := range h.byID {
		result, info := porcupine.CheckOperationsVerbose(model(), operations, deadline)
		switch result {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			h.endless++
			tb.Logf("seed %d: the checker did not come to an end for %d operations", seed, len(operations))
		default:
			name := "" // a picture of the history, where a person asked for it
			if dir := os.Getenv("REPRISE_HISTORIES"); dir != "" {
				name = fmt.Sprintf("%s/%s-%d.html", dir, strings.NewReplacer("/", "-", "=", "-").Replace(tb.Name()), seed)
				_ = porcupine.VisualizePath(model(), info, name)
			}
			tb.Logf("seed %d: no order explains the %d operations on %v %s\n%s", seed, len(operations), id, name, unexplained(operations, info))
			return false
		}
	}
	return true
}

// checked runs histories on a deployment until its time is up, and demands that each has
// an explanation and that together they met everything that there is to meet.
func checked(t *testing.T, d *deployment, meets ...string) {
	t.Helper()
	checkedRuns(t, func(t *testing.T, seed uint64) *recorder {
		t.Helper()
		return history(t, d, seed)
	}, meets...)
}

// checkedRuns is checked for anything that has histories.
func checkedRuns(t *testing.T, run func(*testing.T, uint64) *recorder, meets ...string) {
	t.Helper()
	tally := map[string]int{}
	n, undecided := 0, 0
	met := func() bool {
		return !slices.ContainsFunc(meets, func(what string) bool { return tally[what] == 0 })
	}
	for until := time.Now().Add(labtest.Soak(t)); n < histories || n < mostHistories && !met() || time.Now().Before(until); n++ {
		seed := rand.Uint64()
		h := run(t, seed)
		if !h.check(t, seed) {
			t.Errorf("seed %d: the history is not linearizable", seed)
		}
		undecided += h.endless
		for what, n := range h.tally {
			tally[what] += n
		}
	}
	if undecided > 1+n/100 { // the checker's time is limited, and the machine may be busy
		t.Errorf("the histories of %d IDs were not decided, in %d runs", undecided, n)
	}
	for _, what := range meets {
		if tally[what] == 0 {
			t.Errorf("no call met %q, so nothing was shown about it", what)
		}
	}
	t.Logf("%d histories: %v", n, tally)
}

// unexplained returns the operations around the first that the longest explanation leaves
// out.
func unexplained(operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	longest := []int{}
	for _, orders := range info.PartialLinearizations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	explained := map[int]int{}
	for place, i := range longest {
		explained[i] = place + 1
	}
	order := make([]int, len(operations))
	first := time.Duration(math.MaxInt64)
	for i := range operations {
		order[i] = i
		if out := operations[i].Output.(output); explained[i] == 0 && !out.unknown {
			first = min(first, out.at.from)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(operations[a].Call, operations[b].Call) })
	var text strings.Builder
	for _, i := range order {
		in, out := operations[i].Input.(input), operations[i].Output.(output)
		if out.at.from > first+60*time.Millisecond || out.at.to < first-150*time.Millisecond {
			continue
		}
		fmt.Fprintf(&text, "%4d  %-9s %x print=%d lease=%v policy=%+v takeover=%v/%d → %s\n",
			explained[i], in.kind, in.owner[:2], in.print[0], in.lease, in.policy, in.takeover, in.attempts, out)
	}
	return text.String()
}
