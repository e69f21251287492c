package reprise_test

import (
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
		{reprise.Config{Lease: -1}, "Config.Lease"},
		{reprise.Config{Lease: time.Second - 1}, "Config.Lease"},
		{reprise.Config{Lease: store.MaxDuration + 1}, "Config.Lease"},
		{reprise.Config{Retention: -1}, "Config.Retention"},
		{reprise.Config{Retention: time.Millisecond - 1}, "Config.Retention"},
		{reprise.Config{Retention: store.MaxDuration + 1}, "Config.Retention"},
		{reprise.Config{ClaimTimeout: -1}, "Config.ClaimTimeout"},
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

func TestNewWithoutAStore(t *testing.T) {
	t.Parallel()
	_, err := reprise.New(nil, reprise.Config{})
	wantError(t, "New", err, store.ErrInvalid)
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
			"Operation.Retention is -1ns":        func(op *reprise.Operation) { op.Retention = -1 },
			"Operation.Retention is 1ns":         func(op *reprise.Operation) { op.Retention = 1 },
			"Operation.Retention is 87600h0m0.0": func(op *reprise.Operation) { op.Retention = store.MaxDuration + time.Millisecond },
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
	})
}

// Listings hide the records that stores make for themselves, so no policy has their
// label.
func TestBeginRefusesTheLabelOfProbes(t *testing.T) {
	t.Parallel()
	op := order("key")
	op.Label = store.ProbeLabel
	if _, err := newEngine(t, memstore.New(), nil, reprise.Config{}).Begin(t.Context(), op); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}
