package operate_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// One table says who has to act on a record: for listings, counts and pages alike.
func TestNeedOf(t *testing.T) {
	t.Parallel()
	guard := func(cfg protocol.Config) *protocol.Guard {
		cfg.Label = "orders"
		return must(protocol.New(memstore.New(), cfg))
	}
	kept := must(operate.Encode(protocol.Response{Status: 201, Body: []byte("paid")}))
	strict := guard(protocol.Config{Seal: protocol.Sealing{Secret: secret(t, "2026"), Strict: true}})
	once := guard(protocol.Config{MaxAttempts: 1})
	for name, c := range map[string]struct {
		state   store.RecordState
		payload []byte
		listed  bool // without its payload
		once    bool // AtMostOnce
		guard   *protocol.Guard
		want    operate.Need
	}{
		"running":                           {state: store.StateRunning, want: operate.NeedsNone},
		"running, once":                     {state: store.StateRunning, once: true, want: operate.NeedsNone},
		"lapsed":                            {state: store.StateLapsed, want: operate.NeedsRetry},
		"lapsed, once":                      {state: store.StateLapsed, once: true, want: operate.NeedsPerson},
		"lapsed, its policy allows another": {state: store.StateLapsed, guard: strict, want: operate.NeedsRetry},
		"lapsed, it was the last attempt":   {state: store.StateLapsed, guard: once, want: operate.NeedsPerson},
		"unknown":                           {state: store.StateUnknown, want: operate.NeedsPerson},
		"unknown, once":                     {state: store.StateUnknown, once: true, want: operate.NeedsPerson},
		"unreadable":                        {state: store.StateUnreadable, want: operate.NeedsPerson},
		"expired":                           {state: store.StateExpired, want: operate.NeedsNone},
		"completed":                         {state: store.StateCompleted, payload: kept, want: operate.NeedsNone},
		"completed, damaged":                {state: store.StateCompleted, payload: append(bytes.Clone(kept), 0), want: operate.NeedsPerson},
		"completed, empty":                  {state: store.StateCompleted, want: operate.NeedsPerson},
		"completed, damaged, in a listing":  {state: store.StateCompleted, payload: []byte("x"), listed: true, want: operate.NeedsNone},
		"completed, refused by its policy":  {state: store.StateCompleted, payload: kept, guard: strict, want: operate.NeedsPerson},
		"completed by Do":                   {state: store.StateCompleted, payload: must(job.EncodeResult(nil, 1, nil)), want: operate.NeedsNone},
		"completed by Do, damaged":          {state: store.StateCompleted, payload: must(job.EncodeResult(nil, 1, nil))[:4], want: operate.NeedsPerson},
	} {
		r := store.Record{ID: store.ID{1}, State: c.state, Policy: store.Policy{Label: "orders", AtMostOnce: c.once}, Attempt: 1, Payload: c.payload, Size: len(c.payload)}
		if c.listed {
			r.Payload = nil
		}
		var guards []*protocol.Guard
		if c.guard != nil {
			guards = append(guards, c.guard)
		}
		need := operate.NeedOf(&r, guards...)
		if need != c.want {
			t.Errorf("%s: needs %q, want %q", name, need, c.want)
		}
		if person := need == operate.NeedsPerson; person && !operate.MayNeedPerson.Has(c.state) && c.state != store.StateCompleted {
			t.Errorf("%s: listings of those that may need a person leave it out", name)
		} else if counted := c.state != store.StateUnreadable && c.state != store.StateCompleted && c.guard == nil; counted && person != r.Stuck() {
			t.Errorf("%s: the engine counts it as stuck: %t", name, r.Stuck())
		}
	}
}

func TestAnswerOf(t *testing.T) {
	t.Parallel()
	response := func(status int) []byte { return must(operate.Encode(protocol.Response{Status: status})) }
	for name, c := range map[string]struct {
		payload []byte
		failed  bool
		corrupt bool
		text    string // in the error; empty for none
	}{
		"a success":             {payload: response(200)},
		"a client's mistake":    {payload: response(404)},
		"a failure":             {payload: response(503), failed: true},
		"damaged":               {payload: []byte("x"), corrupt: true, text: "unreadable"},
		"a value":               {payload: must(job.EncodeResult(nil, 1, nil)), text: "it is a value"},
		"an error, the answer":  {payload: must(job.EncodeResult(nil, 0, job.Keep(errors.New("declined")))), text: "an error that is the answer"},
		"a failure of Do":       {payload: must(job.EncodeResult(nil, 0, errors.New("refused"))), failed: true, text: "a failure"},
		"a damaged value of Do": {payload: must(job.EncodeResult(nil, 1, nil))[:4], corrupt: true, text: "unreadable"},
	} {
		a, ok := operate.AnswerOf(&store.Record{State: store.StateCompleted, Payload: c.payload, Size: len(c.payload)})
		if !ok || a.Failed != c.failed || errors.Is(a.Err, store.ErrCorrupt) != c.corrupt || (a.Err == nil) != (c.text == "") {
			t.Errorf("%s: %+v", name, a)
		} else if a.Err != nil && !strings.Contains(a.Err.Error(), c.text) {
			t.Errorf("%s: %v", name, a.Err)
		}
	}
	for state := store.StateRunning; state <= store.StateUnknown; state++ {
		if a, ok := operate.AnswerOf(&store.Record{State: state, Size: 9}); ok {
			t.Errorf("%v, in a listing: %+v", state, a)
		}
	}
}

func TestStateNamed(t *testing.T) {
	t.Parallel()
	for state := store.StateRunning; state <= store.StateUnknown; state++ {
		if got, ok := operate.StateNamed(strings.ToUpper(state.String())); got != state || !ok {
			t.Errorf("%v is read as %v", state, got)
		}
	}
	if got, ok := operate.StateNamed("stuck"); ok {
		t.Errorf("read as %v", got)
	}
}
