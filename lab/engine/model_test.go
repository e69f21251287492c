package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"pgregory.net/rapid"
)

const modelRetention = 5 * time.Minute

// modelStep is one thing that happens. Which of its fields mean something depends on its
// kind.
type modelStep struct {
	Kind    int // of modelKinds
	Process int
	Key     int
	Print   byte
	Preset  reprise.Preset
	Limit   int // MaxAttempts
	Attempt int // which of those that run
	Lose    int // replies
	Sleep   time.Duration
}

var modelKinds = []string{"begin", "begin", "begin", "complete", "complete", "release", "unknown", "resolve", "sleep", "sleep", "sleep", "deafen", "deafen", "hear"}

// modelSteps draws a sequence. Its instants are those at which something happens, and a
// nanosecond about them.
func modelSteps() *rapid.Generator[[]modelStep] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelStep {
		return modelStep{
			Kind:    rapid.IntRange(0, len(modelKinds)-1).Draw(t, "kind"),
			Process: rapid.IntRange(0, 1).Draw(t, "process"),
			Key:     rapid.IntRange(0, 3).Draw(t, "key") / 3,
			Print:   byte(rapid.IntRange(0, 4).Draw(t, "print") / 4), // now and then another request
			Preset:  rapid.SampledFrom([]reprise.Preset{reprise.Recoverable, reprise.Recoverable, reprise.AtMostOnce}).Draw(t, "preset"),
			Limit:   rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "limit"),
			Attempt: rapid.IntRange(0, 5).Draw(t, "attempt"),
			Lose:    rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lose"),
			Sleep: rapid.SampledFrom([]time.Duration{time.Second, engineLease / 3, engineLease, engineLease, modelRetention}).Draw(t, "sleep") +
				time.Duration(rapid.IntRange(-1, 1).Draw(t, "off")),
		}
	}), 25, 60)
}

// modelRun is a sequence that runs in a bubble.
type modelRun struct {
	model   *model
	inner   *memstore.Store
	engines [2]*reprise.Engine
	stores  [2]*modelStore
	running []*modelAttempt
	made    int       // payloads
	met     *modelMet // of all sequences
}

// modelMet counts the situations that the sequences met: a property that was never tried
// was not tested.
type modelMet struct {
	sync.Mutex
	count map[string]int
}

func (m *modelMet) add(what fmt.Stringer, detail any) {
	m.Lock()
	defer m.Unlock()
	m.count[fmt.Sprint(what, " ", detail)]++
}

// modelAttempt is an attempt that has not ended.
type modelAttempt struct {
	*reprise.Attempt
	store *modelStore
}

// step carries one step out, and says where a result is not the model's.
func (r *modelRun) step(ctx context.Context, s modelStep) error {
	store := r.stores[s.Process]
	switch modelKinds[s.Kind] {
	case "begin":
		store.losing(s.Lose)
		return r.begin(ctx, s)
	case "resolve":
		return r.resolve(ctx, s)
	case "complete", "release", "unknown":
		if len(r.running) == 0 {
			return nil
		}
		i := s.Attempt % len(r.running)
		a := r.running[i]
		r.running = append(r.running[:i:i], r.running[i+1:]...)
		a.store.losing(s.Lose)
		switch modelKinds[s.Kind] {
		case "release":
			return a.Release() //nolint:contextcheck // the engine bounds the end of an attempt
		case "unknown":
			return r.unknown(a) //nolint:contextcheck // the engine bounds the end of an attempt
		}
		return r.complete(a) //nolint:contextcheck // the engine bounds the end of an attempt
	case "sleep":
		inTime(s.Sleep)
		synctest.Wait() // events due at this instant come before the next step
	case "deafen", "hear":
		r.model.Lock()
		defer r.model.Unlock()
		store.deaf = modelKinds[s.Kind] == "deafen"
	}
	return nil
}

func (r *modelRun) begin(ctx context.Context, s modelStep) error {
	op := reprise.Operation{
		Scope: "tenant", Key: strconv.Itoa(s.Key), Fingerprint: store.Fingerprint{s.Print},
		Preset: s.Preset, MaxAttempts: s.Limit, Retention: modelRetention,
	}
	id, st := store.DeriveID(op.Scope, op.Endpoint, op.Key), r.stores[s.Process]
	// Where the engine does not call the store, its result must be the one that the store
	// would have returned.
	st.takeover = true
	r.model.Lock()
	st.outcome, st.attempt = r.model.claim(store.ClaimRequest{ID: id, Fingerprint: op.Fingerprint}, false)
	r.model.Unlock()
	res, err := r.engines[s.Process].Begin(ctx, op)
	if res.Attempt != nil {
		r.running = append(r.running, &modelAttempt{res.Attempt, st})
	}
	r.model.Lock()
	defer r.model.Unlock()
	r.met.add(res.Outcome, st.attempt > 1)
	switch {
	case err != nil:
		return fmt.Errorf("begin: %w", err)
	case res.Outcome != reprise.Outcome(st.outcome):
		return fmt.Errorf("begin answered %v, want %v", res.Outcome, st.outcome)
	case res.Outcome == reprise.Replayed && string(res.Payload) != r.model.find(id).payload:
		return fmt.Errorf("replayed %q, want %q", res.Payload, r.model.find(id).payload)
	case res.Outcome == reprise.Claimed && res.Attempt.View().Number() != st.attempt:
		return fmt.Errorf("attempt %d, want %d", res.Attempt.View().Number(), st.attempt)
	}
	return nil
}

func (r *modelRun) complete(a *modelAttempt) error {
	r.made++
	a.store.takeover = false
	end, err := a.Complete(reprise.Completion{Payload: []byte(strconv.Itoa(r.made))})
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	r.model.Lock()
	defer r.model.Unlock()
	want := completeStatus(a.store.taken, a.store.outcome)
	r.met.add(want, a.store.outcome)
	switch {
	case end.End != want:
		return fmt.Errorf("complete answered %v (%w), want %v", end.End, end.Err, want)
	case want == reprise.EndSuperseded && string(end.Payload) != r.model.find(a.ID()).payload:
		return fmt.Errorf("superseded by %q, want %q", end.Payload, r.model.find(a.ID()).payload)
	}
	return nil
}

func (r *modelRun) unknown(a *modelAttempt) error {
	a.store.takeover = false
	err := a.Unknown("drawn")
	r.model.Lock()
	defer r.model.Unlock()
	r.met.add(reprise.EndUnknown, a.store.taken)
	switch {
	case a.store.taken != (err == nil):
		return fmt.Errorf("unknown answered %w, want taken %t", err, a.store.taken)
	case err != nil && !errors.Is(err, store.ErrLeaseLost):
		return fmt.Errorf("unknown: %w", err)
	case err == nil && !r.model.unresolved(a.ID()):
		return errors.New("unknown was taken, and no record says so")
	}
	return nil
}

// resolve is an operator who forgets or answers a record whose outcome is unknown.
func (r *modelRun) resolve(ctx context.Context, s modelStep) error {
	r.model.Lock()
	defer r.model.Unlock()
	id := store.DeriveID("tenant", "", strconv.Itoa(s.Key))
	if !r.model.unresolved(id) {
		return nil
	}
	rec, err := r.inner.Inspect(ctx, id)
	if err != nil || rec.State != store.StateUnknown {
		return fmt.Errorf("an operator finds %v (%w), want unknown", rec.State, err)
	}
	resolution := store.Resolution{Fence: rec.Fence, Forget: s.Attempt%2 == 0, Payload: []byte("an operator's"), Retention: modelRetention}
	if known := r.model.records[id]; resolution.Forget {
		r.met.add(rec.State, "forgotten")
		delete(r.model.records, id)
	} else {
		r.met.add(rec.State, "answered")
		known.completed, known.payload, known.valid = true, "an operator's", time.Now().Add(modelRetention)
	}
	return r.inner.Resolve(ctx, id, resolution)
}

// runModel runs a sequence in a new bubble and reports the step at which the engine
// deviated from the model.
func runModel(t *testing.T, met *modelMet, steps []modelStep) (failure error) {
	synctest.Test(t, func(t *testing.T) {
		r := &modelRun{met: met, inner: memstore.New(), model: &model{records: make(map[store.ID]*modelRecord)}}
		for i := range r.engines {
			r.stores[i] = &modelStore{Store: r.inner, model: r.model}
			engine, err := reprise.New(r.stores[i], reprise.Config{Lease: engineLease, MaxRun: -1})
			if err != nil {
				t.Fatal(err)
			}
			r.engines[i] = engine
		}
		for i, s := range steps {
			if err := r.step(t.Context(), s); err != nil {
				failure = fmt.Errorf("step %d, %s: %w", i, modelKinds[s.Kind], err)
				break
			}
		}
		for _, a := range r.running {
			_ = a.Release()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for i, engine := range r.engines {
			if err := engine.Close(ctx); err != nil && failure == nil {
				failure = fmt.Errorf("process %d: %w", i, err)
			}
		}
	})
	return failure
}

// TestEngineFollowsItsModel runs random sequences of two processes over one memory store,
// with clock steps, leases that run out and lost replies, and predicts every result:
// 6,000 sequences, and more in a soak.
func TestEngineFollowsItsModel(t *testing.T) {
	t.Parallel()
	met := &modelMet{count: make(map[string]int)}
	until := time.Now().Add(labtest.Soak(t))
	for batch := 0; !t.Failed() && (batch < 60 || time.Now().Before(until)); batch++ {
		t.Run(strconv.Itoa(batch), func(t *testing.T) {
			if batch >= 12 {
				labtest.Breadth(t, "batches of random runs")
			}
			rapid.Check(t, func(rt *rapid.T) { // 100 of them
				if err := runModel(t, met, modelSteps().Draw(rt, "steps")); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
	t.Log(met.count)
	if testing.Short() {
		return // a dozen batches do not meet everything
	}
	for _, what := range []string{
		"claimed false", "claimed true", "in-progress false", "replayed false", "mismatch false", "lapsed false",
		"recorded claimed", "superseded completed", "contested in-progress", "contested lapsed", "unrecorded mismatch",
		"unknown true", "unknown false", "unknown forgotten", "unknown answered",
	} {
		if n := met.count[what]; n < 5 && !t.Failed() {
			t.Errorf("met %q %d times, want 5 at least", what, n)
		}
	}
}
