package draws

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/setting"
)

// inCI is how many draws CI tries of each framework, and few where the race detector runs
// with them, or another release of the framework.
const inCI, few = 10_000, 1000

// mostFindings is how many findings a run reports.
const mostFindings = 5

// Run tries the draws of a framework, and reports each that differs, as small as it can
// be: ten thousand, or a thousand if slow is true, and in short tests. serve starts the
// hosts; they serve until the test ends.
func Run(t *testing.T, slow bool, serve func(*testing.T, *Cases) *Framework) {
	t.Helper()
	otherwise := uint64(inCI)
	if slow || testing.Short() {
		otherwise = few
	}
	count, seed := setting.Number(t, "REPRISE_DRAWS", otherwise), setting.Number(t, "REPRISE_SEED", 1)
	cases := new(Cases)
	f := serve(t, cases)
	if list := unknown(f); len(list) > 0 {
		t.Fatalf("%s: no draw has the steps %q", f.Name, list)
	}
	tryAll(f, cases, count, seed, func(text string) { t.Error(text) })
	t.Logf("%s: %d draws from seed %d", f.Name, count, seed)
}

// Finds reports whether a thousand draws differ somewhere: a generator that finds nothing
// in a framework with a mistake proves nothing.
func Finds(t *testing.T, serve func(*testing.T, *Cases) *Framework) bool {
	t.Helper()
	cases := new(Cases)
	var found atomic.Bool
	tryAll(serve(t, cases), cases, few, 1, func(text string) {
		if !found.Swap(true) {
			t.Log(text)
		}
	})
	return found.Load()
}

// tryAll tries draws with a client for each processor.
func tryAll(f *Framework, cases *Cases, count, seed uint64, report func(string)) {
	var next, findings atomic.Uint64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			b := &bench{f: f, cases: cases}
			defer b.close()
			for n := next.Add(1) - 1; n < count && findings.Load() < mostFindings; n = next.Add(1) - 1 {
				d := New(f, seed+n)
				found, err := b.try(&d)
				if err != nil {
					report(fmt.Sprintf("%s, seed %d: %v\n%s", f.Name, d.Seed, err, d))
					return
				}
				if len(found) > 0 && findings.Add(1) <= mostFindings {
					small, found := b.shrink(d, found)
					report(fmt.Sprintf("%s, seed %d: %s\ndiffers:\n\t%s\nREPRISE_DRAWS=1 REPRISE_SEED=%d tries it again", f.Name, d.Seed, small, strings.Join(found, "\n\t"), d.Seed))
				}
			}
		})
	}
	all.Wait()
}

// bench tries draws, one after another.
type bench struct {
	f      *Framework
	cases  *Cases
	client client
	guards *guards
	tried  int

	// asked are the cases since the last stores, and before those of the ones before: a
	// handler may outlive its response, and then asks for its case.
	asked, before []string
}

// between is how many draws share their stores, which remember every one.
const between = 1000

// outcome is what a draw led to.
type outcome struct {
	bare, first, again answer

	runs      int64 // of the first request with a key and its retry
	committed int64 // effects of both
	panicked  bool  // the handler's panic left the place of the adapter
	hijacked  bool  // the handler took the connection
}

// try sends the requests of a draw, and returns what differs.
func (b *bench) try(d *Draw) ([]string, error) {
	o, err := b.send(d)
	if err != nil {
		return nil, err
	}
	return check(b.f, d, o), nil
}

func (b *bench) send(d *Draw) (o outcome, err error) {
	if b.tried++; b.guards == nil || b.tried%between == 0 {
		b.close()
		for _, id := range b.before {
			b.cases.byID.Delete(id)
		}
		b.before, b.asked = b.asked, nil
		b.client.conns = map[string]*conn{}
		if b.guards, err = openGuards(); err != nil {
			return o, err
		}
	}
	bare, keyed := &Case{Draw: d}, &Case{Draw: d, Guard: b.guards.by[d.Policy]}
	if o.bare, err = b.ask(bare, ""); err != nil {
		return o, fmt.Errorf("bare: %w", err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); bare.runs.Load() > 0 && !bare.over.Load() && time.Now().Before(end); { // it may end after its response
		<-tick.C
	}
	o.panicked, o.hijacked = bare.panicked.Load(), bare.hijacked.Load()
	committed, key := b.guards.effects.committed.Load(), b.cases.next()
	if o.first, err = b.ask(keyed, key); err != nil {
		return o, fmt.Errorf("first: %w", err)
	}
	for end := time.Now().Add(patience); ; <-tick.C { // a handler may end after its connection
		o.again, err = b.ask(keyed, key)
		if err != nil || time.Now().After(end) || !isProblem(&o.again, "in-progress") {
			break
		}
	}
	o.runs, o.committed = keyed.runs.Load(), b.guards.effects.committed.Load()-committed
	if err != nil {
		return o, fmt.Errorf("retry: %w", err)
	}
	return o, nil
}

// ask sends a request for a case.
func (b *bench) ask(c *Case, key string) (answer, error) {
	id := b.cases.add(c)
	b.asked = append(b.asked, id)
	q := request{proto: c.Proto, alone: c.Does("hijack", "length", "file"), fields: [][2]string{{CaseField, id}, {"Origin", "https://shop.example"}}}
	if c.Encoding != "" {
		q.fields = append(q.fields, [2]string{"Accept-Encoding", c.Encoding})
	}
	if key != "" {
		q.fields = append(q.fields, [2]string{"Idempotency-Key", key})
	}
	return b.client.send(b.host(c.Host), q, c.runs.Load)
}

func (b *bench) host(name string) *Host {
	for i := range b.f.Hosts {
		if b.f.Hosts[i].Name == name {
			return &b.f.Hosts[i]
		}
	}
	return nil
}

func (b *bench) close() {
	b.client.close()
	if b.guards != nil {
		_ = b.guards.close(context.Background())
	}
}

// shrink takes away from a draw all that its first difference does not need.
func (b *bench) shrink(d Draw, found []string) (Draw, []string) {
	kind := func(text string) string { text, _, _ = strings.Cut(text, " is "); return text }
	same := func(other string) bool { return kind(other) == kind(found[0]) }
	for smaller := true; smaller; {
		smaller = false
		for c := range d.smaller(b.f) {
			if still, err := b.try(&c); err == nil && slices.ContainsFunc(still, same) {
				d, smaller = c, true
				found = append([]string{found[0]}, slices.DeleteFunc(still, same)...)
				break
			}
		}
	}
	if last, err := b.try(&d); err == nil && len(last) > 0 {
		found = last
	}
	return d, found
}
