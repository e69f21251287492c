package matrix

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// smokeCase is a case that each adapter passes over each store.
type smokeCase struct {
	conformance.Case

	needs need
	last  bool // it ends a process, so it runs after the others
	run   func(*pair)
}

// need is what a store has to have for a case to apply.
type need uint8

const (
	processes need = 1 << iota // it is shared by processes
	streams                    // a response may leave before its effects are recorded
	atomic                     // effects commit with the response
	link                       // it is reached through a network, which can be cut
)

func rule(id, text string) conformance.Case { return conformance.Case{ID: id, Rule: text} }

// shortLease is that of processes that die or pause, and of handlers that outlast it.
const shortLease = 4 * time.Second

var everyByte = func() (all []byte) {
	for b := range 256 {
		all = append(all, byte(b))
	}
	return all
}()

// cases run at the same time in a pair. The rules of
// requests are in [adaptertest], over memory; these show that they hold in each pair.
var cases = []smokeCase{
	{rule("M1", "The first response is the handler's, and its retry at another process gets it again, byte for byte."), 0, false, func(p *pair) {
		r := p.request("first", adaptertest.Program{
			Status: 201, BodyBase64: everyByte, Headers: []adaptertest.Pair{{"Content-Type", "application/octet-stream"}, {"X-A", "1"}, {"X-A", "2"}},
		})
		first := p.wants(p.a.post(p.Context(), r), 201, false)
		again := p.wants(p.b.post(p.Context(), r), 201, true)
		for _, a := range []answer{first, again} {
			if got := a.header.Values("X-A"); a.body != string(everyByte) || strings.Join(got, " ") != "1 2" {
				p.Errorf("%q with X-A %q", a.body, got)
			}
		}
		p.ran(r, 1)
	}},
	{rule("M2", "Of many equal requests to two processes at once, one runs."), 0, false, func(p *pair) {
		r := p.request("together", adaptertest.Program{DelayMS: 200, Status: 202})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch a := []*process{p.a, p.b}[i%2].post(p.Context(), r); {
				case a.status == 202, a.status == http.StatusConflict && a.code == "in-progress":
				default:
					p.Errorf("answered %v", a)
				}
			})
		}
		all.Wait()
		p.wants(p.a.post(p.Context(), r), 202, true)
		p.ran(r, 1)
	}},
	{rule("M3", "A duplicate in another process waits, and gets the replay."), 0, false, func(p *pair) {
		r := p.request("waits", adaptertest.Program{DelayMS: 400, Status: 202})
		first := p.a.postLater(p, r)
		p.wants(p.b.post(p.Context(), r), 202, true)
		p.wants(<-first, 202, false)
		p.ran(r, 1)
	}},
	{rule("M4", "When the first request is released, one of the duplicates that wait runs, and the others get its response."), 0, false, func(p *pair) {
		r := p.request("released", adaptertest.Program{DelayMS: 400, Status: 503})
		first := p.a.postLater(p, r)
		r.program = adaptertest.Program{Status: 202}
		answers := make(chan answer)
		for range 3 {
			go func() { answers <- p.b.post(p.Context(), r) }()
		}
		replayed := 0
		for range 3 {
			a := <-answers
			if a.status != 202 {
				p.Errorf("answered %v", a)
			}
			if a.replayed {
				replayed++
			}
		}
		p.wants(<-first, 503, false)
		if replayed != 2 {
			p.Errorf("%d replays, want 2", replayed)
		}
		p.ran(r, 2)
	}},
	{rule("M6", "A different request with the key is refused, and the record stays."), 0, false, func(p *pair) {
		r := p.request("reused", adaptertest.Program{Status: 202})
		p.wants(p.a.post(p.Context(), r), 202, false)
		other := r
		other.body = "other"
		p.refused(p.b.post(p.Context(), other), http.StatusUnprocessableEntity, "key-reused")
		p.wants(p.b.post(p.Context(), r), 202, true)
		p.ran(r, 1)
	}},
	{rule("M7", "A different request with the key is refused by another process, too, while the first runs."), 0, false, func(p *pair) {
		r := p.request("running", adaptertest.Program{DelayMS: 400, Status: 202})
		first := p.b.postLater(p, r)
		other := r
		other.body = "other"
		p.refused(p.a.post(p.Context(), other), http.StatusUnprocessableEntity, "key-reused")
		p.wants(<-first, 202, false)
	}},
	{rule("M8", "A client that leaves stops neither the run nor the record."), 0, false, func(p *pair) {
		r := p.request("leaves", adaptertest.Program{DelayMS: 400, Status: 202})
		ctx, leave := context.WithCancel(p.Context())
		go func() { p.a.post(ctx, r) }()
		eventually(p, "it runs", func() bool { return p.a.runs(p, r.key) == 1 })
		leave()
		p.wants(p.b.post(p.Context(), r), 202, true)
		p.ran(r, 1)
	}},
	{rule("M9", "A 5xx is released: the retry runs at once."), 0, false, func(p *pair) {
		r := p.request("fails", adaptertest.Program{Status: 503})
		p.wants(p.a.post(p.Context(), r), 503, false)
		r.program.Status = 202
		p.wants(p.b.post(p.Context(), r), 202, false)
		p.ran(r, 2)
	}},
	{rule("M10", "With AtMostOnce a 5xx is kept."), 0, false, func(p *pair) {
		r := p.request("kept", adaptertest.Program{Status: 503})
		p.wants(p.once.post(p.Context(), r), 503, false)
		p.wants(p.once.post(p.Context(), r), 503, true)
		p.ran(r, 1)
	}},
	{rule("M11", "With AtMostOnce a response that was cut short is neither replayed nor run again."), streams, false, func(p *pair) {
		r := p.request("cut", adaptertest.Program{BodySize: 2000, Behaviour: adaptertest.Aborts})
		if a := p.once.post(p.Context(), r); a.status != 0 {
			p.Errorf("answered %v, want a connection that ends", a)
		}
		r.program = adaptertest.Program{}
		eventually(p, "the end of the first request", func() bool { return p.once.post(p.Context(), r).code != "in-progress" })
		p.refused(p.once.post(p.Context(), r), http.StatusConflict, "result-unavailable")
		p.ran(r, 1)
	}},
	{rule("M12", "A streamed response is replayed as a whole."), 0, false, func(p *pair) {
		r := p.request("stream", adaptertest.Program{Body: "a", Chunks: []adaptertest.Chunk{{Body: "b"}, {DelayMS: 1, Body: "c"}}})
		for i, at := range []*process{p.a, p.b} {
			if a := p.wants(at.post(p.Context(), r), http.StatusOK, i > 0); a.body != "abc" {
				p.Errorf("%q, want abc", a.body)
			}
		}
	}},
	{rule("M13", "A response over the limit is sent whole; a retry does not run: it gets a summary."), streams, false, func(p *pair) {
		r := p.request("large", adaptertest.Program{BodySize: 5000, Status: 202})
		if a := p.wants(p.b.post(p.Context(), r), 202, false); len(a.body) != 5000 {
			p.Errorf("%d bytes", len(a.body))
		}
		if a := p.wants(p.a.post(p.Context(), r), 202, true); len(a.body) == 5000 {
			p.Errorf("replayed %d bytes", len(a.body))
		}
		p.ran(r, 1)
	}},
	{rule("M14", "After the retention, and until the horizon of the first request, a retry gets 409 and another request 422, in every process."), 0, false, func(p *pair) {
		began, r := time.Now(), p.request("expires", adaptertest.Program{Status: 202})
		p.wants(p.soon.post(p.Context(), r), 202, false)
		eventually(p, "the end of the retention", func() bool { return p.soon.post(p.Context(), r).status != 202 })
		if took := time.Since(began); took < retention {
			p.Errorf("the retention of %v ended after %v", retention, took)
		}
		other := r
		other.body = "other"
		for _, at := range []*process{p.soon, p.b} {
			if at == p.b && !p.store.has(processes) {
				continue
			}
			p.refused(at.post(p.Context(), r), http.StatusConflict, "result-expired")
			p.refused(at.post(p.Context(), other), http.StatusUnprocessableEntity, "key-reused")
		}
		if n := p.soon.runs(p, r.key); n != 1 {
			p.Errorf("%d runs, want one", n)
		}
	}},
	{rule("M15", "A handler that runs for longer than its lease is not run a second time."), 0, false, func(p *pair) {
		r := p.request("long", adaptertest.Program{DelayMS: int(3 * shortLease / 2 / time.Millisecond), Status: 202})
		first, other := p.soon.postLater(p, r), p.other(p.soon)
		eventually(p, "the end of the run", func() bool {
			switch a := other.post(p.Context(), r); {
			case a.replayed, a.code == "result-expired": // it is soon forgotten
				return true
			case a.code != "in-progress":
				p.Fatalf("answered %v", a)
			}
			return false
		})
		p.wants(<-first, 202, false)
		p.ran(r, 1)
	}},
	{rule("M16", "A process that is paused for longer than its lease, and goes on, gets the response of the one that took over."), processes, true, func(p *pair) {
		r := p.request("paused", adaptertest.Program{DelayMS: 4_000, Echo: true, IgnoreCtx: true}) // a lease: it has not ended when the signal comes
		first := p.soon.postLater(p, r)
		p.soon.Signal(p, syscall.SIGSTOP)
		r.program.DelayMS = 0
		second := p.takesOver(p.a, r, 2)
		p.soon.Signal(p, syscall.SIGCONT)
		if a := <-first; a.body != second.body {
			p.Errorf("the client of the paused process got %v, want %v", a, second)
		}
		p.wants(p.a.post(p.Context(), r), http.StatusOK, true)
	}},
	{rule("M17", "The request of a process that was killed is in progress until its lease lapses; then a retry is the second attempt. Effects that commit with the response are there once."), processes, true, func(p *pair) {
		r := p.request("killed", adaptertest.Program{DelayMS: 60_000, Echo: true, Effect: p.store.Atomic})
		p.soon.postLater(p, r)
		r.program.DelayMS = 0
		p.refused(p.a.post(p.Context(), r), http.StatusConflict, "in-progress")
		p.soon.Kill()
		p.takesOver(p.a, r, 2)
		if p.store.Atomic {
			p.effects(r, 1)
		}
	}},
	{rule("M18", "With AtMostOnce, the request of a process that was killed never runs again."), processes, true, func(p *pair) {
		r := p.request("died", adaptertest.Program{DelayMS: 60_000})
		p.once.postLater(p, r)
		p.once.Kill()
		eventually(p, "the end of the lease", func() bool { return p.a.post(p.Context(), r).code != "in-progress" })
		p.refused(p.a.post(p.Context(), r), http.StatusConflict, "outcome-unknown")
		if n := p.a.runs(p, r.key); n != 0 {
			p.Errorf("%d runs, want none", n)
		}
	}},
	{rule("M19", "While the store is away nothing runs: 503 with Retry-After. A response whose record it did not take in time is recorded once it does."), link, false, func(p *pair) {
		away, cut, heal := p.startBehindALink()
		r := p.request("away", adaptertest.Program{Status: 202})
		cut()
		if a := away.post(p.Context(), r); a.status != 503 || a.code != "store-unavailable" || a.header.Get("Retry-After") == "" {
			p.Errorf("answered %v", a)
		}
		heal()
		eventually(p, "a run", func() bool { return away.post(p.Context(), r).status == 202 })
		if n := away.runs(p, r.key); n != 1 {
			p.Errorf("%d runs, want one", n)
		}
		r = p.request("late", adaptertest.Program{DelayMS: 400, Status: 202})
		first := away.postLater(p, r)
		cut()
		p.wants(<-first, 202, false)
		heal()
		eventually(p, "the record", func() bool { return p.a.post(p.Context(), r).replayed })
		if n := p.a.runs(p, r.key) + away.runs(p, r.key); n != 1 {
			p.Errorf("%d runs, want one", n)
		}
	}},
	{rule("M20", "With FailOpen a request runs unprotected while the store is away, and its response says so."), link | streams, false, func(p *pair) {
		open, cut, _ := p.startBehindALink("-fail-open")
		cut()
		a := p.wants(open.post(p.Context(), p.request("open", adaptertest.Program{Status: 202})), 202, false)
		if got := a.header.Get("Idempotency-Status"); got != "unprotected" {
			p.Errorf("Idempotency-Status is %q", got)
		}
	}},
	{rule("M21", "Equal keys of two principals are independent."), 0, false, func(p *pair) {
		r := p.request("tenants", adaptertest.Program{Status: 202, Echo: true})
		other := r
		other.tenant += "-2"
		for _, replayed := range []bool{false, true} {
			p.wants(p.a.post(p.Context(), r), 202, replayed)
			p.wants(p.a.post(p.Context(), other), 202, replayed)
		}
		p.ran(r, 2)
	}},
	{rule("M22", "Where a handler says that its outcome is unknown, its client gets its response, and every retry 409."), 0, false, func(p *pair) {
		r := p.request("unknown", adaptertest.Program{Status: 504, Unknown: "the bank timed out"})
		p.wants(p.a.post(p.Context(), r), 504, false)
		p.refused(p.b.post(p.Context(), r), http.StatusConflict, "outcome-unknown")
		p.ran(r, 1)
	}},
	{rule("M23", "Where effects commit with the response, those of a 5xx are rolled back, kept or not."), atomic, false, func(p *pair) {
		for at, status := range map[*process][]int{p.a: {503, 202}, p.once: {503, 503}} {
			r := p.request("effect-"+strconv.Itoa(status[1]), adaptertest.Program{Status: 503, Effect: true})
			p.wants(at.post(p.Context(), r), 503, false)
			p.effects(r, 0)
			r.program.Status = 202
			p.wants(at.post(p.Context(), r), status[1], status[1] == 503)
			p.effects(r, (503-status[1])/301)
		}
	}},
	{rule("M24", "A process that is asked to end answers what runs, and exits 0. The next one replays it."), 0, true, func(p *pair) {
		r := p.request("drains", adaptertest.Program{DelayMS: 400, Status: 202})
		first := p.b.postLater(p, r)
		p.b.Signal(p, syscall.SIGTERM)
		p.wants(<-first, 202, false)
		p.b.End(p)
		if !p.store.Alone {
			p.wants(p.a.post(p.Context(), r), 202, true)
		}
	}},
}
