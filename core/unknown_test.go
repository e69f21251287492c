package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

var presets = []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce}

// stored returns the record of op.
func (b *bench) stored(t *testing.T, op reprise.Operation) store.Record {
	t.Helper()
	inspector, _ := store.As[store.Inspector](b.store.Store)
	return must(inspector.Inspect(t.Context(), idOf(op)))
}

// wantUnknown fails the test unless the record of op says that its outcome is unknown,
// and no engine runs it again.
func (b *bench) wantUnknown(t *testing.T, op reprise.Operation, reason string) {
	t.Helper()
	if r := b.stored(t, op); r.State != store.StateUnknown || r.Reason != reason || !r.AtMostOnce {
		t.Fatalf("the record is %+v, want unknown: %s", r, reason)
	}
	for _, preset := range presets {
		retry := op
		retry.Preset = preset
		b.want(t, retry, reprise.Lapsed)
		setupOver(t, b.store.Store, reprise.Config{}).want(t, retry, reprise.Lapsed)
	}
	b.want(t, changed(op), reprise.Mismatch)
}

func TestUnknownRefusesRetriesWhateverThePreset(t *testing.T) {
	for _, preset := range presets {
		inTimeNamed(t, preset.String(), func(t *testing.T) {
			b, op := setup(t, reprise.Config{}), order("k")
			op.Preset = preset
			a := b.claim(t, op)
			wantError(t, "Unknown", a.Unknown("the bank timed out"), nil)
			wantCause(t, a.Context(), context.Canceled)
			b.wantUnknown(t, op, "the bank timed out")
			b.events.wantCount(t, "unknown", 1)
			if n := b.Stats().Ends[reprise.EndUnknown]; n != 1 {
				t.Errorf("%d attempts ended so, want 1", n)
			}
			_, err := a.Complete(reprise.Completion{})
			wantError(t, "Complete", err, store.ErrInvalid)
			wantError(t, "Release", a.Release(), store.ErrInvalid)
			wantError(t, "Unknown", a.Unknown("again"), store.ErrInvalid)
			time.Sleep(retention)
			release(t, b.claim(t, op))
		})
	}
}

// A reason is cut and cleaned where one can see it.
func TestUnknownKeepsAPrintableReason(t *testing.T) {
	long := strings.Repeat("x", 255)
	for reason, want := range map[string]string{
		"":                        "no reason given",
		"timeout":                 "timeout",
		"Zeit\u00fcberschreitung": "Zeit?berschreitung",
		"a\x00b\xffc\x7f":         "a?b?c?",
		long:                      long,
		long + "y":                long[:252] + "...",
		strings.Repeat("é", 300):  strings.Repeat("?", 252) + "...",
	} {
		inTimeNamed(t, fmt.Sprintf("%.20q of %d", reason, len(reason)), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			wantError(t, "Unknown", b.claim(t, order("k")).Unknown(reason), nil)
			b.wantUnknown(t, order("k"), want)
		})
	}
}

// failing makes the first n calls of Unknown fail, after the store executed them or
// before.
func (b *bench) failing(n int, executed bool, err error) {
	b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) error {
		if n--; n < 0 {
			return b.store.Store.Unknown(ctx, r)
		}
		if executed {
			_ = b.store.Store.Unknown(ctx, r)
		}
		return err
	}
}

// The lease is kept until the store has taken it, so that no retry runs meanwhile.
func TestUnknownContinuesInTheBackground(t *testing.T) {
	for _, executed := range []bool{false, true} {
		inTimeNamed(t, fmt.Sprint("executed ", executed), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			b.failing(1<<30, executed, store.ErrUnknown)
			wantError(t, "Unknown", b.claim(t, order("k")).Unknown("timeout"), store.ErrUnknown)
			time.Sleep(3 * lease)
			if executed {
				b.want(t, order("k"), reprise.Lapsed)
			} else {
				b.want(t, order("k"), reprise.InProgress)
			}
			b.store.Heal()
			time.Sleep(budget)
			b.wantUnknown(t, order("k"), "timeout")
			if n := b.Stats().Ends[reprise.EndUnknown]; n != 1 {
				t.Errorf("%d attempts ended so, want 1", n)
			}
			b.events.wantCount(t, "lease-lost", 0)
		})
	}
}

func TestUnknownThatTheStoreRefusesLapses(t *testing.T) {
	for err, within := range map[error]time.Duration{
		store.ErrCorrupt: 0, store.ErrMisconfigured: 2 * lease, store.ErrUnavailable: time.Hour,
	} {
		inTimeNamed(t, err.Error(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			b.failing(1<<30, false, err)
			wantError(t, "Unknown", b.claim(t, order("k")).Unknown("timeout"), err)
			time.Sleep(within)
			if s := b.Stats(); s.Ends[reprise.EndDropped] != 1 {
				t.Errorf("ended as %v", s.Ends)
			}
			time.Sleep(lease)
			if got := b.want(t, order("k"), reprise.Claimed).Attempt; got.View().Number() != 2 { // its preset decides, as after a crash
				t.Errorf("attempt %d", got.View().Number())
			} else {
				release(t, got)
			}
		})
	}
}

func TestUnknownAfterTheLeaseWasLost(t *testing.T) {
	answer := func(outcome store.Outcome) func(*bench) {
		return func(b *bench) {
			b.store.OnUnknown = func(context.Context, store.UnknownRequest) error { return store.ErrLeaseLost }
			b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
				return store.ClaimResult{Outcome: outcome}, nil
			}
		}
	}
	for _, c := range []struct {
		name   string
		lose   func(*bench)
		end    reprise.AttemptEnd
		failed error
	}{
		{"another completed", answer(store.Completed), reprise.EndSuperseded, store.ErrLeaseLost},
		{"another runs", answer(store.InProgress), reprise.EndContested, store.ErrLeaseLost},
		{"another lapsed", answer(store.Lapsed), reprise.EndContested, store.ErrLeaseLost},
		{"the key is another's", answer(store.Mismatch), reprise.EndUnrecorded, store.ErrLeaseLost},
		{"the record is gone", func(b *bench) { b.store.Store = memstore.New() }, reprise.EndUnknown, nil},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			a := b.claim(t, order("k"))
			c.lose(b)
			if err := a.Unknown("timeout"); !errors.Is(err, c.failed) || c.failed == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.failed)
			}
			if s := b.Stats(); s.Ends[c.end] != 1 {
				t.Errorf("ended as %v, want %v", s.Ends, c.end)
			}
			if c.end == reprise.EndUnknown {
				b.wantUnknown(t, order("k"), "timeout")
			}
		})
	}
}

// An attempt without a claim has no record to say so.
func TestUnknownOfAnUnprotectedAttemptIsNotKept(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		away(b, store.ErrUnavailable)
		b.store.OnUnknown = func(context.Context, store.UnknownRequest) error {
			t.Error("the store was asked")
			return nil
		}
		a := b.want(t, open(order("k")), reprise.Unprotected).Attempt
		wantError(t, "Unknown", a.Unknown("timeout"), store.ErrUnavailable)
		if s := b.Stats(); s.Ends[reprise.EndUnrecorded] != 1 {
			t.Errorf("ended as %v", s.Ends)
		}
		b.store.Heal()
		release(t, b.claim(t, order("k")))
	})
}
