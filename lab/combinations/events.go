package combinations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// harm breaks the next n calls of the operations that a process makes.
func (w *world) harm(place int, ops []faultstore.Op, n int, fault func() faultstore.Fault) {
	w.mu.Lock()
	p := w.live[place]
	p.harmed = true
	w.mu.Unlock()
	for _, op := range ops {
		for range n {
			p.faults.Next(op, fault())
		}
	}
}

// storeFaults are the faults of a store, as processes see them.
var storeFaults = []struct {
	name  string
	fault func() faultstore.Fault
}{
	{"unavailable", func() faultstore.Fault { return faultstore.FailBefore(store.ErrUnavailable) }},
	{"unknown, not executed", func() faultstore.Fault { return faultstore.FailBefore(store.ErrUnknown) }},
	{"reply lost", faultstore.LoseReply},
	{"not replicated", func() faultstore.Fault { return faultstore.FailAfter(store.ErrNotReplicated) }},
	{"hangs", faultstore.Hang},
	{"hangs after execution", faultstore.HangAfter},
	{"executes 3s late", func() faultstore.Fault { return faultstore.ExecuteLate(3 * time.Second) }},
	{"slow by 700ms", func() faultstore.Fault { return faultstore.Delay(700 * time.Millisecond) }},
	{"slow by 3s", func() faultstore.Fault { return faultstore.Delay(3 * time.Second) }},
	{"busy", func() faultstore.Fault { return faultstore.FailBefore(store.ErrBusy) }},
	{"full", func() faultstore.Fault { return faultstore.FailBefore(store.ErrFull) }},
	{"misconfigured", func() faultstore.Fault { return faultstore.FailBefore(store.ErrMisconfigured) }},
	{"panics", func() faultstore.Fault { return faultstore.Panic(drawnPanic) }},
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
			err = stored.Resolve(ctx, w.store, stored.Resolution{
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

// send sends a request to the process at its place.
func (w *world) send(q *request) {
	w.mu.Lock()
	p := w.live[q.place]
	q.process, q.asked = p, w.now()
	w.requests = append(w.requests, q)
	w.tally["requests"]++
	w.note("%s gets %v", p.name, q)
	w.mu.Unlock()
	w.tasks.Go(func() {
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), requestKey{}, q))
		defer cancel()
		if q.leaves > 0 {
			defer time.AfterFunc(q.leaves, cancel).Stop()
		}
		rec := httptest.NewRecorder()
		broken := serveBroken(p.handler, rec, q.http(ctx))
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case broken != nil && broken != any(drawnPanic) && !isAbort(broken):
			w.find("panic: %v", broken)
		case broken != nil, p.isDead(), ctx.Err() != nil:
			w.note("no response reaches the client of %s", q.key)
		default:
			w.answered(q, answerOf(rec, p.marker(q), w.now()))
		}
	})
}

// serveBroken serves a request and returns the value of its panic.
func serveBroken(h http.Handler, rw http.ResponseWriter, r *http.Request) (broken any) {
	defer func() { broken = recover() }()
	h.ServeHTTP(rw, r)
	return nil
}

func isAbort(v any) bool {
	err, ok := v.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}
