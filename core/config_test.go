package reprise_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestConfigThatIsOutOfRangeNamesItsField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg   reprise.Config
		field string
	}{
		{reprise.Config{Lease: time.Second - 1}, "Config.Lease"},
		{reprise.Config{Lease: store.MaxDuration + 1}, "Config.Lease"},
		{reprise.Config{Retention: time.Millisecond - 1}, "Config.Retention"},
		{reprise.Config{Retention: store.MaxDuration + 1}, "Config.Retention"},
		{reprise.Config{ClaimTimeout: 10*time.Millisecond - 1}, "Config.ClaimTimeout"},
		{reprise.Config{ClaimTimeout: time.Minute + 1}, "Config.ClaimTimeout"},
		{reprise.Config{CompleteTimeout: -1}, "Config.CompleteTimeout"},
		{reprise.Config{CompleteTimeout: time.Minute + 1}, "Config.CompleteTimeout"},
		{reprise.Config{MaxRun: -2}, "Config.MaxRun"},
		{reprise.Config{MaxRun: store.MaxDuration + 1}, "Config.MaxRun"},
		{reprise.Config{Waiting: reprise.WaitLimits{Total: -1}}, "Config.Waiting.Total"},
		{reprise.Config{Waiting: reprise.WaitLimits{PerKey: -1}}, "Config.Waiting.PerKey"},
		{reprise.Config{Waiting: reprise.WaitLimits{PerScope: -1}}, "Config.Waiting.PerScope"},
	} {
		_, err := reprise.New(memstore.New(), c.cfg)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.field+" is ") {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	_, err := reprise.New(nil, reprise.Config{})
	wantError(t, "without a store", err, store.ErrInvalid)
}

func TestConfigInRange(t *testing.T) {
	inTime(t, func(t *testing.T) { // 10 ms pass on a busy machine
		for _, cfg := range []reprise.Config{
			{},
			{Lease: time.Second, Retention: time.Millisecond, ClaimTimeout: 10 * time.Millisecond, CompleteTimeout: 10 * time.Millisecond, MaxRun: 1},
			{Lease: store.MaxDuration, Retention: store.MaxDuration, ClaimTimeout: time.Minute, CompleteTimeout: time.Minute, MaxRun: store.MaxDuration},
			{MaxRun: -1},
			{Waiting: reprise.WaitLimits{Total: 1, PerKey: 1, PerScope: 1}},
		} {
			e, err := reprise.New(memstore.New(), cfg)
			if err != nil {
				t.Errorf("%+v: %v", cfg, err)
				continue
			}
			if res, err := e.Begin(t.Context(), order("k")); err != nil {
				t.Errorf("%+v: %v", cfg, err)
			} else if err := res.Attempt.Release(); err != nil {
				t.Errorf("%+v: %v", cfg, err)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Errorf("%+v: %v", cfg, err)
			}
		}
	})
}

func TestOperationThatIsOutOfRangeNamesItsField(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b, refused := setup(t, reprise.Config{}), 0
		for field, change := range map[string]func(*reprise.Operation){
			"Operation.Scope is empty":           func(op *reprise.Operation) { op.Scope = "" },
			"Operation.Key is empty":             func(op *reprise.Operation) { op.Key = "" },
			"Operation.Preset is 2":              func(op *reprise.Operation) { op.Preset = reprise.AtMostOnce + 1 },
			"combined with AtMostOnce":           func(op *reprise.Operation) { op.FailOpen, op.Preset = true, reprise.AtMostOnce },
			"combined with Horizon":              func(op *reprise.Operation) { op.FailOpen, op.Horizon = true, time.Hour },
			"Operation.MaxAttempts is -1":        func(op *reprise.Operation) { op.MaxAttempts = -1 },
			"Operation.Wait is -1ns":             func(op *reprise.Operation) { op.Wait = -1 },
			"Operation.Label has 33 bytes":       func(op *reprise.Operation) { op.Label = strings.Repeat("x", 33) },
			"Operation.Label has the byte 0xc3":  func(op *reprise.Operation) { op.Label = "café" },
			"Operation.Label has the byte 0xa":   func(op *reprise.Operation) { op.Label = "a\n" },
			"Operation.Retention is 1ns":         func(op *reprise.Operation) { op.Retention = 1 },
			"Operation.Retention is 87600h0m0.0": func(op *reprise.Operation) { op.Retention = store.MaxDuration + time.Millisecond },
			"Operation.Horizon is -1ns":          func(op *reprise.Operation) { op.Horizon = -1 },
			"Operation.Horizon is 999.999µs":     func(op *reprise.Operation) { op.Horizon = time.Millisecond - 1 },
			"Retention and Operation.Horizon is": func(op *reprise.Operation) { op.Retention, op.Horizon = time.Hour, store.MaxDuration-time.Hour+1 },
			"Operation.Horizon is 2562047h47m":   func(op *reprise.Operation) { op.Horizon = 1<<63 - 1 },
		} {
			op := order("k")
			change(&op)
			res, err := b.Begin(t.Context(), op)
			if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), field) || res.Attempt != nil {
				t.Errorf("%s: %v", field, err)
			}
			refused++
			want := reprise.Failed
			if op.Key == "" {
				want = reprise.KeyMissing
			}
			if e := b.events.list[refused-1]; len(b.events.list) != refused || e.Outcome != want || e.Label != "" {
				t.Errorf("%s: %+v", field, b.events.list)
			}
		}
		probe := order("k") // listings hide the records that stores make for themselves
		probe.Label = store.ProbeLabel
		_, err := b.Begin(t.Context(), probe)
		wantError(t, "the label of probes", err, store.ErrInvalid)
		longest := order("k")
		longest.Retention, longest.Horizon = time.Hour, store.MaxDuration-time.Hour
		release(t, b.claim(t, longest))
	})
}

func TestDescriptionIsPrintableAndBounded(t *testing.T) {
	for given, want := range map[string]string{
		"":                     "",
		"POST /orders of acme": "POST /orders of acme",
		"caf\u00e9\n\x7f\xff":  "caf????",
		strings.Repeat("x", store.MaxDescription):   strings.Repeat("x", store.MaxDescription),
		strings.Repeat("x", store.MaxDescription+1): strings.Repeat("x", store.MaxDescription-3) + "...",
	} {
		inTimeNamed(t, want, func(t *testing.T) {
			b, op := setup(t, reprise.Config{}), order("k")
			op.Description = given
			a := b.claim(t, op)
			if got := b.stored(t, op).Description; got != want {
				t.Errorf("%q", got)
			}
			release(t, a)
		})
	}
}

func TestDownstreamKeyIsLayoutVersion1(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		for name, want := range map[string]string{"": "30b4db5e-3c8c-80f0-bb8c-c1ed7b535545", "payment": "2d23bfad-53d6-8b69-be3c-b5eea33a01f2", strings.Repeat("n", 1000): "b1cee5a8-a075-8968-b1d3-fdfa289d7b97"} {
			got := keyOf(t, a, name)
			if got != want {
				t.Errorf("%.10q: %s, want %s", name, got, want)
			}
			if len(got) != 36 || got[14] != '8' || !strings.ContainsRune("89ab", rune(got[19])) {
				t.Errorf("%s is no UUID of version 8", got)
			}
		}
		changed := order("k2")
		other := b.claim(t, changed)
		if keyOf(t, other, "payment") == keyOf(t, a, "payment") {
			t.Error("two operations share a downstream key")
		}
		release(t, other)
		changed.Fingerprint[0]++
		third := b.claim(t, changed)
		if keyOf(t, third, "payment") == keyOf(t, other, "payment") {
			t.Error("two requests share a downstream key")
		}
		release(t, third)
		release(t, a)
	})
}

// keyOf returns the key of an attempt for a downstream call.
func keyOf(t *testing.T, a *reprise.Attempt, name string) string {
	t.Helper()
	return must(a.View().Key(name))
}

// A handler that ignores whether there is an attempt, as on a route whose key is
// optional, gets defined values of none.
func TestViewOfNoAttempt(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"no run": nil, "another's value": "x", "another's number": 42, "another's list": []int{42}, "another's context": t.Context(),
	} {
		ctx := context.WithValue(t.Context(), store.ContextKey, value) //nolint:staticcheck // as frameworks find values by strings
		view, ok := reprise.AttemptFrom(ctx)
		if key, err := view.Key("charge"); ok || key != "" || !errors.Is(err, reprise.ErrNoAttempt) {
			t.Errorf("%s: found is %t, key %q, error %v", name, ok, key, err)
		}
		if view.Number() != 0 || view.Fence() != 0 || view.ID() != (store.ID{}) {
			t.Errorf("%s: number %d, fence %d, ID %v", name, view.Number(), view.Fence(), view.ID())
		}
	}
}
