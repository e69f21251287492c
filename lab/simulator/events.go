package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// storeFault is a fault of a store, as processes see it.
type storeFault struct {
	name  string
	fault faultstore.Fault
}

var (
	// network are the faults of messages.
	network = []storeFault{
		{"request lost", faultstore.Hang()},
		{"reply lost", faultstore.HangAfter()},
		{"request lost, connection reset", faultstore.FailBefore(store.ErrUnknown)},
		{"reply lost, connection reset", faultstore.LoseReply()},
		{"executes 3s late", faultstore.ExecuteLate(3 * time.Second)},
		{"slow by 700ms", faultstore.Delay(700 * time.Millisecond)},
	}
	storeFaults = append([]storeFault{
		{"unavailable", faultstore.FailBefore(store.ErrUnavailable)},
		{"not replicated", faultstore.FailAfter(store.ErrNotReplicated)},
		{"slow by 3s", faultstore.Delay(3 * time.Second)},
		{"busy", faultstore.FailBefore(store.ErrBusy)},
		{"full", faultstore.FailBefore(store.ErrFull)},
		{"misconfigured", faultstore.FailBefore(store.ErrMisconfigured)},
		{"panics", faultstore.Panic(drawnPanic)},
	}, network...)
	allOps = []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release, faultstore.Unknown}
)

// drawFault returns a step that breaks the next calls of a process: all of them, or, as a
// lossy network does, some.
func drawFault(d dice, place int) (text string, do func(*world)) {
	n, ops, script := of(d, 1, 2, 3, 5, 20), allOps, map[faultstore.Op][]faultstore.Fault{}
	f := of(d, storeFaults...)
	if i := d.IntN(len(allOps) + 1); i < len(allOps) {
		ops = ops[i : i+1]
	}
	if text = fmt.Sprintf("process %d: the next %d calls of %v: %s", place, n, ops, f.name); d.percent(40) {
		n, ops, f.name = 30, allOps, ""
		text = fmt.Sprintf("process %d: the network is lossy", place)
	}
	for _, op := range ops {
		for range n {
			fault := f.fault
			if f.name == "" {
				if fault = faultstore.Pass(); d.percent(30) {
					fault = of(d, network...).fault
				}
			}
			script[op] = append(script[op], fault)
		}
	}
	return text, func(w *world) {
		w.mu.Lock()
		p := w.live[place]
		p.harmed = true
		w.mu.Unlock()
		for op, faults := range script {
			p.faults.Next(op, faults...)
		}
	}
}

// pause stops a process for a while.
func (w *world) pause(place int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.live[place]
	p.harmed, p.paused = true, w.now()+d
	w.note("%s pauses for %v", p.name, d)
}

// operatorAct is the action of an operator on records that lapsed or are unknown.
type operatorAct struct {
	forget    bool
	retention time.Duration // of the answer that the operator gives
	at        time.Duration
	id        store.ID
}

// operatorsBody is the body of an operator's answer.
const operatorsBody = "resolved by an operator"

// String names the action.
func (o operatorAct) String() string {
	if o.forget {
		return "an operator forgets what lapsed"
	}
	return fmt.Sprintf("an operator answers what lapsed, for %v", o.retention)
}

// operate resolves every record that lapsed or whose outcome is unknown, as an operator
// who looked at them does.
func (w *world) operate(act operatorAct) {
	w.judgeStore()
	ctx := context.Background()
	page, err := w.store.List(ctx, store.Query{States: store.States(store.StateLapsed, store.StateUnknown), Limit: store.MaxPage})
	if err != nil {
		panic(err) // of a store in memory
	}
	for _, rec := range page.Records {
		act.id = rec.ID
		if act.forget {
			err = w.store.Resolve(ctx, rec.ID, store.Resolution{Fence: rec.Fence, Forget: true})
		} else {
			answer := protocol.Response{Status: http.StatusAccepted, Body: []byte(operatorsBody)}
			err = operate.Resolve(ctx, w.store, operate.Resolution{
				ID: rec.ID, State: rec.State, Fence: rec.Fence, Answer: answer, Retention: act.retention, Reason: "looked at", Operator: "lab",
			}, slog.DiscardHandler)
		}
		w.mu.Lock()
		if act.at = w.now(); err == nil {
			w.acts = append(w.acts, act)
			w.note("an operator resolves %v: forget %v, retention %v", rec.ID, act.forget, act.retention)
		}
		w.mu.Unlock()
	}
}

// send sends the request of a client, who sends it again, to another process, as long as
// it is not answered for good and the client is patient.
func (w *world) send(q *request) {
	w.tasks.Go(func() {
		for try := 0; !w.ask(q) && try < q.retries; try++ {
			inTime(time.Duration(1+try) * 700 * time.Millisecond)
			q = q.again()
			q.place = (q.place + 1) % places
		}
	})
}

// ask sends a request to the process at its place, and reports whether its client got an
// answer that no retry improves.
func (w *world) ask(q *request) bool {
	w.mu.Lock()
	p := w.live[q.place]
	q.process, q.asked = p, w.now()
	w.requests = append(w.requests, q)
	w.tally["requests"]++
	p.asked++
	w.note("%s gets %v", p.name, q)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), requestKey{}, q))
	defer cancel()
	if q.leaves > 0 {
		defer time.AfterFunc(q.leaves, cancel).Stop()
	}
	rec := httptest.NewRecorder()
	p.awake()
	returned, broken := serve(p.handler, rec, q.http(ctx))
	p.awake()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch err, _ := broken.(error); {
	case broken != nil && broken != any(drawnPanic) && !errors.Is(err, http.ErrAbortHandler):
		w.find("panic: %v", broken)
	case broken != nil, !returned, p.isDead(), ctx.Err() != nil:
		w.note("no response reaches the client of %s", q.key)
		return false
	default:
		w.answered(q, answerOf(rec, w.now()))
	}
	return q.answer == nil || q.answer.code != string(protocol.CodeInProgress) && q.answer.code != string(protocol.CodeStoreUnavailable)
}

// serve serves a request in its own goroutine, which the handler may end, and returns the
// value of its panic.
func serve(h http.Handler, rw http.ResponseWriter, r *http.Request) (returned bool, broken any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { broken = recover() }()
		h.ServeHTTP(rw, r)
		returned = true
	}()
	<-done
	return returned, broken
}
