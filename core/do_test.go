package reprise_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

var (
	errSoldOut = errors.New("sold out")
	errAway    = errors.New("the bank is away")
)

// receipt is the result of the operations in these tests.
type receipt struct {
	Number int
	hidden int
}

// receipts keeps receipts, and knows one error by its name.
var receipts = reprise.NamedErrors[receipt](nil, map[string]error{"sold-out": errSoldOut})

// doer calls Do with a function that counts its runs.
type doer struct {
	*bench
	op    reprise.Operation
	codec reprise.Codec[receipt]
	takes time.Duration // of a run
	runs  atomic.Int64
}

func newDoer(b *bench, preset reprise.Preset) *doer {
	op := order("k")
	op.Preset = preset
	return &doer{bench: b, op: op, codec: receipts}
}

// do runs fn, whose receipt has the number of the run.
func (d *doer) do(ctx context.Context, fn func(context.Context) error) (receipt, bool, error) {
	done, err := d.result(ctx, fn)
	return done.Value, done.Replayed, err
}

func (d *doer) result(ctx context.Context, fn func(context.Context) error) (reprise.DoResult[receipt], error) {
	return reprise.Do(ctx, d.Engine, d.op, d.codec, func(ctx context.Context) (receipt, error) {
		r := receipt{Number: int(d.runs.Add(1)), hidden: 1}
		time.Sleep(d.takes)
		return r, fn(ctx)
	})
}

// wantRuns fails the test unless fn ran so often.
func (d *doer) wantRuns(t *testing.T, want int64) {
	t.Helper()
	if got := d.runs.Load(); got != want {
		t.Fatalf("fn ran %d times, want %d", got, want)
	}
}

func wantSettlement(t *testing.T, err error, action reprise.Action, delay time.Duration) {
	t.Helper()
	if got, after := reprise.SettlementOf(err); got != action || after != delay {
		t.Errorf("%v settles as %v after %v, want %v after %v", err, got, after, action, delay)
	}
}

func doError(t *testing.T, err error) *reprise.DoError {
	t.Helper()
	var e *reprise.DoError
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want a DoError", err)
	}
	return e
}

func succeed(context.Context) error { return nil }

// The results of fn, and how Do treats them: in the first call, and in the next.
func TestDoKeepsOrReleases(t *testing.T) {
	type row struct {
		name   string
		fn     func(context.Context) error
		kept   bool
		answer bool
		is     error // in the first run and after it
		action reprise.Action
	}
	both := []row{
		{name: "a value", fn: succeed, kept: true, action: reprise.Ack},
		{
			name: "an answer", fn: func(context.Context) error { return reprise.Keep(fmt.Errorf("item 7: %w", errSoldOut)) },
			kept: true, answer: true, is: errSoldOut, action: reprise.Ack,
		},
		{
			name: "an answer within", fn: func(context.Context) error { return fmt.Errorf("item 7: %w", reprise.Keep(errSoldOut)) },
			kept: true, answer: true, is: errSoldOut, action: reprise.Ack,
		},
		{
			name: "a joined answer", fn: func(context.Context) error { return errors.Join(errAway, reprise.Keep(errSoldOut)) },
			kept: true, answer: true, is: errSoldOut, action: reprise.Ack,
		},
		{name: "retry", fn: func(context.Context) error { return reprise.Retry(errAway) }, is: errAway, action: reprise.Nack},
		{
			name: "retry what would be an answer", fn: func(context.Context) error { return reprise.Retry(reprise.Keep(errAway)) },
			is: errAway, action: reprise.Nack,
		},
	}
	for preset, rows := range map[reprise.Preset][]row{
		reprise.Recoverable: append([]row{
			{name: "another error", fn: func(context.Context) error { return errAway }, is: errAway, action: reprise.Nack},
		}, both...),
		reprise.AtMostOnce: append([]row{
			{name: "another error", fn: func(context.Context) error { return errSoldOut }, kept: true, is: errSoldOut, action: reprise.Park},
		}, both...),
	} {
		for _, r := range rows {
			inTimeNamed(t, preset.String()+"/"+r.name, func(t *testing.T) {
				d := newDoer(setup(t, reprise.Config{}), preset)
				var first error
				for n := range 3 {
					got, replayed, err := d.do(t.Context(), r.fn)
					if !errors.Is(err, r.is) || (err == nil) != (r.is == nil) {
						t.Fatalf("call %d: error %v, want %v", n, err, r.is)
					}
					wantSettlement(t, err, r.action, 0)
					if err == nil && got != (receipt{Number: 1}) {
						t.Fatalf("call %d: %+v, want what the codec read back", n, got)
					}
					if replayed != (r.kept && n > 0) {
						t.Fatalf("call %d: replayed is %v", n, replayed)
					}
					if err != nil {
						if first == nil {
							first = err
						}
						e := doError(t, err)
						if e.Kept != r.kept || e.Answer != r.answer || err.Error() != first.Error() {
							t.Fatalf("call %d: kept %v, answer %v, %q, want %v, %v, %q", n, e.Kept, e.Answer, err, r.kept, r.answer, first)
						}
					}
				}
				runs := int64(3)
				if r.kept {
					runs = 1
				}
				d.wantRuns(t, runs)
			})
		}
	}
}

// A function that panics, or ends its goroutine, does not hold the key.
func TestDoEndsTheAttemptOfAFunctionThatDoesNotReturn(t *testing.T) {
	for name, leave := range map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("a bug") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			inTimeNamed(t, name+"/"+preset.String(), func(t *testing.T) {
				d := newDoer(setup(t, reprise.Config{}), preset)
				left := make(chan any, 1)
				go func() {
					defer func() { left <- recover() }()
					_, _, _ = d.do(t.Context(), leave)
				}()
				if p := <-left; (name == "panic") != (p == "a bug") {
					t.Fatalf("it left with %v", p)
				}
				got, replayed, err := d.do(t.Context(), succeed)
				if preset == reprise.Recoverable {
					if err != nil || replayed || got.Number != 2 {
						t.Fatal(got, replayed, err)
					}
					return
				}
				wantError(t, "the next call", err, reprise.ErrPanicked)
				wantSettlement(t, err, reprise.Park, 0)
				if e := doError(t, err); !replayed || !e.Kept || e.Answer {
					t.Errorf("%+v, replayed %v", e, replayed)
				}
			})
		}
	}
}

// The outcomes of Begin with which fn does not run.
func TestDoReportsWhyTheFunctionDidNotRun(t *testing.T) {
	unavailable := func(err error) func(context.Context, *doer) {
		return func(_ context.Context, d *doer) {
			away(d.bench, err)
		}
	}
	lapse := func(_ context.Context, d *doer) {
		d.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			return store.ClaimResult{Outcome: store.Lapsed}, nil
		}
	}
	running := func(remaining time.Duration) func(context.Context, *doer) {
		return func(_ context.Context, d *doer) {
			d.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
				return store.ClaimResult{Outcome: store.InProgress, Remaining: remaining}, nil
			}
		}
	}
	payload := func(p string) func(context.Context, *doer) {
		return func(_ context.Context, d *doer) {
			d.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
				return store.ClaimResult{Outcome: store.Completed, Payload: []byte(p)}, nil
			}
		}
	}
	for _, r := range []struct {
		name    string
		arrange func(context.Context, *doer)
		is      error
		outcome reprise.Outcome
		action  reprise.Action
		delay   time.Duration
	}{
		{"running elsewhere", running(7 * time.Second), nil, reprise.InProgress, reprise.Nack, 7 * time.Second},
		{"running for nobody knows how long", running(0), nil, reprise.InProgress, reprise.Nack, time.Second},
		{"lapsed", lapse, nil, reprise.Lapsed, reprise.Park, 0},
		{"another message", func(ctx context.Context, d *doer) {
			other := d.op
			other.Fingerprint[0]++
			_, _ = reprise.Do(ctx, d.Engine, other, nil, func(context.Context) (int, error) { return 1, nil })
		}, nil, reprise.Mismatch, reprise.Park, 0},
		{"ended long ago", func(ctx context.Context, d *doer) {
			d.op.Horizon = time.Hour
			_, _ = reprise.Do(ctx, d.Engine, d.op, nil, func(context.Context) (receipt, error) { return receipt{}, nil })
			time.Sleep(retention)
		}, nil, reprise.Expired, reprise.Ack, 0},
		{"unreachable", unavailable(store.ErrUnavailable), store.ErrUnavailable, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"unknown", unavailable(store.ErrUnknown), store.ErrUnknown, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"not replicated", unavailable(store.ErrNotReplicated), store.ErrNotReplicated, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"full", unavailable(store.ErrFull), store.ErrFull, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"misconfigured", unavailable(store.ErrMisconfigured), store.ErrMisconfigured, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"closed", func(ctx context.Context, d *doer) { _ = d.Close(ctx) }, store.ErrClosed, reprise.Unavailable, reprise.Nack, 2 * time.Second},
		{"an unreadable record", unavailable(store.ErrCorrupt), store.ErrCorrupt, reprise.Corrupt, reprise.Park, 0},
		{"no payload", payload(""), store.ErrCorrupt, reprise.Corrupt, reprise.Park, 0},
		{"a payload of a guard", payload("\x01\x00\x00\xc8\x00\x00"), store.ErrCorrupt, reprise.Corrupt, reprise.Park, 0},
		{"another type", func(ctx context.Context, d *doer) {
			_, _ = reprise.Do(ctx, d.Engine, d.op, nil, func(context.Context) (string, error) { return "text", nil })
		}, store.ErrCorrupt, reprise.Corrupt, reprise.Park, 0},
		{"no key", func(_ context.Context, d *doer) { d.op.Key = "" }, store.ErrInvalid, reprise.KeyMissing, reprise.Park, 0},
		{"no scope", func(_ context.Context, d *doer) { d.op.Scope = "" }, store.ErrInvalid, reprise.Failed, reprise.Nack, 0},
		{"neither", func(_ context.Context, d *doer) { d.op.Scope, d.op.Key = "", "" }, store.ErrInvalid, reprise.Failed, reprise.Nack, 0},
		{"a retention out of range", func(_ context.Context, d *doer) { d.op.Retention = 11 * 365 * 24 * time.Hour }, store.ErrInvalid, reprise.Failed, reprise.Nack, 0},
		{"a horizon out of range, and no key", func(_ context.Context, d *doer) { d.op.Horizon, d.op.Key = -1, "" }, store.ErrInvalid, reprise.Failed, reprise.Nack, 0},
		{"a decoder", func(_ context.Context, d *doer) { d.op.Decoder = new(decoder) }, store.ErrInvalid, reprise.Failed, reprise.Nack, 0},
	} {
		inTimeNamed(t, r.name, func(t *testing.T) {
			d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
			r.arrange(t.Context(), d)
			counted := d.Stats().Outcomes[r.outcome]
			_, replayed, err := d.do(t.Context(), succeed)
			if r.is != nil {
				wantError(t, "Do", err, r.is)
			} else if !strings.HasPrefix(err.Error(), "reprise: the operation did not run: ") {
				t.Errorf("error text %q", err)
			}
			wantSettlement(t, err, r.action, r.delay)
			wantSettlement(t, fmt.Errorf("message 9: %w", err), r.action, r.delay)
			if e := doError(t, err); e.Outcome != r.outcome || e.End != 0 || e.Kept || e.Err != nil || replayed {
				t.Errorf("%+v, replayed %v, want outcome %v", e, replayed, r.outcome)
			}
			if n := d.Stats().Outcomes[r.outcome] - counted; n != 1 {
				t.Errorf("counted %d times, want once", n)
			}
			d.wantRuns(t, 0)
		})
	}
}

type decoder struct{}

func (*decoder) Decode([]byte) (string, error) { return "", nil }

// The ends of the completion, for each result of fn.
func TestDoReportsTheEndOfTheCompletion(t *testing.T) {
	answer := func(context.Context) error { return reprise.Keep(errSoldOut) }
	failure := func(context.Context) error { return errSoldOut }
	refuse := func(err error) func(*doer) {
		return func(d *doer) {
			d.store.onComplete = func(context.Context, store.CompleteRequest) error { return err }
		}
	}
	// lost answers that the lease is lost, and then that the record is in the given
	// state.
	lost := func(holder store.ClaimResult) func(*doer) {
		return func(d *doer) {
			d.store.onComplete = func(context.Context, store.CompleteRequest) error { return store.ErrLeaseLost }
			first := true
			d.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				if first {
					first = false
					return d.store.Store.Claim(ctx, r)
				}
				return holder, nil
			}
		}
	}
	kept := func(value receipt, err error) store.ClaimResult {
		payload, failed := reprise.EncodeResult(receipts, value, err)
		if failed != nil {
			t.Fatal(failed)
		}
		return store.ClaimResult{Outcome: store.Completed, Payload: payload}
	}
	outran := func(d *doer) { d.takes = maxRun + 2*lease }
	const second = time.Second
	for _, r := range []struct {
		name     string
		arrange  func(*doer)
		fn       func(context.Context) error
		status   reprise.AttemptEnd
		end      reprise.AttemptEnd
		number   int // of the receipt that is returned
		replayed bool
		is       error // nil: no error
		action   reprise.Action
		delay    time.Duration
	}{
		{"value/recorded", func(*doer) {}, succeed, 0, reprise.EndRecorded, 1, false, nil, reprise.Ack, 0},
		{"answer/recorded", func(*doer) {}, answer, reprise.EndRecorded, reprise.EndRecorded, 0, false, errSoldOut, reprise.Ack, 0},
		{"failure/recorded", func(*doer) {}, failure, reprise.EndRecorded, reprise.EndRecorded, 0, false, errSoldOut, reprise.Park, 0},

		{"value/unrecorded", refuse(store.ErrCorrupt), succeed, reprise.EndUnrecorded, reprise.EndUnrecorded, 1, false, store.ErrCorrupt, reprise.Ack, 0},
		{"answer/unrecorded", refuse(store.ErrClosed), answer, reprise.EndUnrecorded, reprise.EndUnrecorded, 0, false, errSoldOut, reprise.Ack, 0},
		{"failure/unrecorded", refuse(store.ErrClosed), failure, reprise.EndUnrecorded, reprise.EndUnrecorded, 0, false, errSoldOut, reprise.Park, 0},
		{"value/dropped later", refuse(store.ErrUnavailable), succeed, reprise.EndUnrecorded, reprise.EndDropped, 1, false, store.ErrUnavailable, reprise.Ack, 0},
		{"value/the key is another's", lost(store.ClaimResult{Outcome: store.Mismatch}), succeed, reprise.EndUnrecorded, reprise.EndUnrecorded, 1, false, store.ErrLeaseLost, reprise.Ack, 0},

		{"value/superseded by a value", lost(kept(receipt{Number: 9}, nil)), succeed, 0, reprise.EndSuperseded, 9, true, nil, reprise.Ack, 0},
		{"answer/superseded by a value", lost(kept(receipt{Number: 9}, nil)), answer, 0, reprise.EndSuperseded, 9, true, nil, reprise.Ack, 0},
		{"value/superseded by an answer", lost(kept(receipt{}, reprise.Keep(errSoldOut))), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, true, errSoldOut, reprise.Ack, 0},
		{"value/superseded by a failure", lost(kept(receipt{}, errSoldOut)), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, true, errSoldOut, reprise.Park, 0},
		{"value/superseded by garbage", lost(store.ClaimResult{Outcome: store.Completed}), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, false, store.ErrCorrupt, reprise.Park, 0},

		{"value/after MaxRun", outran, succeed, reprise.EndUnknown, reprise.EndUnknown, 1, false, reprise.ErrRunTooLong, reprise.Ack, 0},
		{"answer/after MaxRun", outran, answer, reprise.EndUnknown, reprise.EndUnknown, 0, false, errSoldOut, reprise.Ack, 0},
		{"failure/after MaxRun", outran, failure, reprise.EndUnknown, reprise.EndUnknown, 0, false, errSoldOut, reprise.Park, 0},

		{"value/contested", lost(store.ClaimResult{Outcome: store.InProgress}), succeed, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, reprise.Nack, second},
		{"answer/contested", lost(store.ClaimResult{Outcome: store.Lapsed}), answer, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, reprise.Nack, second},
		{"failure/contested", lost(store.ClaimResult{Outcome: store.Lapsed}), failure, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, reprise.Nack, second},
	} {
		inTimeNamed(t, r.name, func(t *testing.T) {
			preset := reprise.Recoverable
			if strings.HasPrefix(r.name, "failure/") {
				preset = reprise.AtMostOnce
			}
			d := newDoer(setup(t, reprise.Config{MaxRun: maxRun}), preset)
			r.arrange(d)
			got, err := d.result(t.Context(), r.fn)
			wantSettlement(t, err, r.action, r.delay)
			if strings.HasPrefix(r.name, "value/") && (r.status == reprise.EndUnrecorded || r.status == reprise.EndUnknown) {
				if err != nil {
					t.Fatalf("error %v beside a value", err)
				}
				err = got.Unrecorded
			} else if got.Unrecorded != nil {
				t.Errorf("unrecorded: %v, beside the error %v", got.Unrecorded, err)
			}
			if !errors.Is(err, r.is) || (err == nil) != (r.is == nil) {
				t.Fatalf("error %v, want %v", err, r.is)
			}
			wantSettlement(t, err, r.action, r.delay)
			if got.Value.Number != r.number || got.Replayed != r.replayed {
				t.Errorf("%+v, want number %d, replayed %v", got, r.number, r.replayed)
			}
			if err != nil {
				if e := doError(t, err); e.End != r.status || e.Outcome != reprise.Claimed || e.Error() == "" {
					t.Errorf("%+v, want status %v", e, r.status)
				}
			}
			d.wantRuns(t, 1)
			time.Sleep(time.Hour) // the background work ends
			if s := d.Stats(); s.Ends[r.end] != 1 {
				t.Errorf("ended as %v, want %v", s.Ends, r.end)
			}
		})
	}
}

// A release that is not confirmed is still a release to its caller.
func TestDoReleaseThatFails(t *testing.T) {
	inTime(t, func(t *testing.T) {
		d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
		d.store.onRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
		_, _, err := d.do(t.Context(), func(context.Context) error { return errAway })
		wantError(t, "Do", err, errAway)
		wantError(t, "its cause", doError(t, err).Cause, store.ErrUnavailable)
		wantSettlement(t, err, reprise.Nack, 0)
		d.store.heal()
		time.Sleep(lease)
		if got, replayed, err := d.do(t.Context(), succeed); err != nil || replayed || got.Number != 2 {
			t.Error(got, replayed, err)
		}
	})
}

// A release that comes after the record says that the outcome is unknown releases
// nothing.
func TestDoReleaseThatComesTooLate(t *testing.T) {
	inTime(t, func(t *testing.T) {
		d := newDoer(setup(t, reprise.Config{MaxRun: maxRun}), reprise.Recoverable)
		_, _, err := d.do(t.Context(), func(ctx context.Context) error {
			time.Sleep(maxRun + 2*lease)
			return context.Cause(ctx)
		})
		if e := doError(t, err); e.End != reprise.EndUnknown {
			t.Errorf("ended as %v, want %v", e.End, reprise.EndUnknown)
		}
		wantError(t, "Do", err, reprise.ErrRunTooLong)
		wantSettlement(t, err, reprise.Park, 0)
		d.wantUnknown(t, d.op, overran)
	})
}

func TestDoWithoutProtection(t *testing.T) {
	for _, r := range []struct {
		name   string
		err    error
		status reprise.AttemptEnd
		action reprise.Action
	}{
		{"a value", nil, reprise.EndUnrecorded, reprise.Ack},
		{"an answer", reprise.Keep(errSoldOut), reprise.EndUnrecorded, reprise.Ack},
		{"an error", errSoldOut, 0, reprise.Nack},
	} {
		inTimeNamed(t, r.name, func(t *testing.T) {
			d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
			d.op.FailOpen = true
			away(d.bench, store.ErrUnavailable)
			got, err := d.result(t.Context(), func(context.Context) error { return r.err })
			wantSettlement(t, err, r.action, 0)
			if r.err == nil && (err != nil || got.Value != (receipt{Number: 1})) || r.err != nil && !errors.Is(err, errSoldOut) {
				t.Errorf("%+v, %v", got, err)
			}
			e := doError(t, cmp.Or(err, got.Unrecorded))
			if e.Outcome != reprise.Unprotected || e.End != r.status || got.Replayed {
				t.Errorf("%+v, replayed %v", e, got.Replayed)
			}
			wantError(t, "the cause", e.Cause, store.ErrUnavailable)
		})
	}
}

func TestDoNeedsAnEngineAndAFunction(t *testing.T) {
	t.Parallel()
	e := newEngine(t, memstore.New(), nil, reprise.Config{})
	fn := func(context.Context) (int, error) { return 1, nil }
	_, err := reprise.Do(t.Context(), nil, order("k"), nil, fn)
	wantError(t, "no engine", err, store.ErrInvalid)
	wantSettlement(t, err, reprise.Nack, 0)
	_, err = reprise.Do[int](t.Context(), e, order("k"), nil, nil)
	wantError(t, "no function", err, store.ErrInvalid)
	if reprise.Keep(nil) != nil || reprise.Retry(nil) != nil {
		t.Error("no error is an error")
	}
	wantSettlement(t, nil, reprise.Ack, 0)
	wantSettlement(t, errAway, reprise.Nack, 0)
	if got := fmt.Sprint(reprise.Ack, reprise.Nack, reprise.Park, reprise.Action(0)); got != "ack nack park invalid(0)" {
		t.Error(got)
	}
}

// It would wait for itself until its patience ends.
func TestOperationInsideOfItselfIsInProgressAtOnce(t *testing.T) {
	for name, inside := range map[string]func(ctx context.Context, e *reprise.Engine, again func(context.Context)) error{
		"at once": func(ctx context.Context, _ *reprise.Engine, again func(context.Context)) error {
			again(ctx)
			return nil
		},
		"inside of another operation": func(ctx context.Context, e *reprise.Engine, again func(context.Context)) error {
			_, err := reprise.Do(ctx, e, order("other"), nil, func(ctx context.Context) (string, error) {
				again(ctx)
				return "other", nil
			})
			return err
		},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			unrenewed(b)
			op := wait(order("k"), time.Hour)
			got, err := reprise.Do(t.Context(), b.Engine, op, nil, func(ctx context.Context) (string, error) {
				again := func(ctx context.Context) {
					for range 2 {
						start := time.Now()
						_, err := reprise.Do(ctx, b.Engine, op, nil, func(context.Context) (string, error) { return "", errors.New("ran inside of itself") })
						var failed *reprise.DoError
						if took := time.Since(start); took > 0 || !errors.As(err, &failed) || failed.Outcome != reprise.InProgress {
							t.Errorf("%v after %v, want in-progress at once", err, took)
						}
						time.Sleep(2 * lease) // its lease is lost
					}
				}
				if err := inside(ctx, b.Engine, again); err != nil {
					t.Error(err)
				}
				_, err := reprise.Do(ctx, b.Engine, changed(op), nil, func(context.Context) (string, error) { return "", nil })
				var failed *reprise.DoError
				if !errors.As(err, &failed) || failed.Outcome != reprise.Mismatch {
					t.Errorf("another request with its key: %v, want mismatch", err)
				}
				return "answer", nil
			})
			if got.Value != "answer" || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
