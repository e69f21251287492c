package job_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
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
var receipts = job.NamedErrors[receipt](nil, map[string]error{"sold-out": errSoldOut})

// doer calls Do with a function that counts its runs.
type doer struct {
	*bench
	op    reprise.Operation
	codec job.Codec[receipt]
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

func (d *doer) result(ctx context.Context, fn func(context.Context) error) (job.DoResult[receipt], error) {
	return job.Do(ctx, d.Engine, d.op, d.codec, func(ctx context.Context) (receipt, error) {
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

func wantSettlement(t *testing.T, err error, action job.Action, delay time.Duration) {
	t.Helper()
	if got, after := job.SettlementOf(err); got != action || after != delay {
		t.Errorf("%v settles as %v after %v, want %v after %v", err, got, after, action, delay)
	}
}

func doError(t *testing.T, err error) *job.DoError {
	t.Helper()
	var e *job.DoError
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
		result error // of fn
		kept   bool
		answer bool
		is     error // in the first run and after it
		action job.Action
	}
	both := []row{
		{"a value", nil, true, false, nil, job.Ack},
		{"an answer", job.Keep(fmt.Errorf("item 7: %w", errSoldOut)), true, true, errSoldOut, job.Ack},
		{"a joined answer", errors.Join(errAway, job.Keep(errSoldOut)), true, true, errSoldOut, job.Ack},
		{"retry", job.Retry(errAway), false, false, errAway, job.Nack},
		{"retry what would be an answer", job.Retry(job.Keep(errAway)), false, false, errAway, job.Nack},
	}
	for preset, rows := range map[reprise.Preset][]row{
		reprise.Recoverable: append([]row{{"another error", errAway, false, false, errAway, job.Nack}}, both...),
		reprise.AtMostOnce:  append([]row{{"another error", errSoldOut, true, false, errSoldOut, job.Park}}, both...),
	} {
		for _, r := range rows {
			inTime(t, preset.String()+"/"+r.name, func(t *testing.T) {
				d := newDoer(setup(t, reprise.Config{}), preset)
				var first error
				for n := range 3 {
					got, replayed, err := d.do(t.Context(), func(context.Context) error { return r.result })
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
			inTime(t, name+"/"+preset.String(), func(t *testing.T) {
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
				wantError(t, "the next call", err, job.ErrPanicked)
				wantSettlement(t, err, job.Park, 0)
				if e := doError(t, err); !replayed || !e.Kept || e.Answer {
					t.Errorf("%+v, replayed %v", e, replayed)
				}
			})
		}
	}
}

// leaving is a codec that ends the goroutine of the caller that reads a record.
type leaving struct {
	job.Codec[receipt]
	leaves bool
}

func (c *leaving) Decode(data []byte) (receipt, error) {
	if c.leaves {
		runtime.Goexit()
	}
	return c.Codec.Decode(data)
}

// Its request is counted, once, as one whose record cannot be read.
func TestDoCountsACallWhoseCodecEndsTheGoroutine(t *testing.T) {
	inTime(t, "goexit", func(t *testing.T) {
		d, codec := newDoer(setup(t, reprise.Config{}), reprise.Recoverable), &leaving{Codec: receipts}
		d.codec = codec
		_, _, err := d.do(t.Context(), succeed)
		wantError(t, "Do", err, nil)
		codec.leaves = true
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _, _ = d.do(t.Context(), succeed)
			t.Error("Do returned")
		}()
		<-left
		if got := d.Stats().Outcomes; got[reprise.Corrupt] != 1 || got[reprise.Replayed] != 0 {
			t.Errorf("counted as %v", got)
		}
	})
}

// The outcomes of Begin with which fn does not run.
func TestDoReportsWhyTheFunctionDidNotRun(t *testing.T) {
	found := func(res store.ClaimResult, err error) func(context.Context, *doer) {
		return func(_ context.Context, d *doer) {
			d.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) { return res, err }
		}
	}
	unavailable := func(err error) func(context.Context, *doer) { return found(store.ClaimResult{}, err) }
	running := func(remaining time.Duration) func(context.Context, *doer) {
		return found(store.ClaimResult{Outcome: store.InProgress, Remaining: remaining}, nil)
	}
	payload := func(p string) func(context.Context, *doer) {
		return found(store.ClaimResult{Outcome: store.Completed, Payload: []byte(p)}, nil)
	}
	for _, r := range []struct {
		name    string
		arrange func(context.Context, *doer)
		is      error
		outcome reprise.Outcome
		action  job.Action
		delay   time.Duration
	}{
		{"running elsewhere", running(7 * time.Second), nil, reprise.InProgress, job.Nack, 7 * time.Second},
		{"running for nobody knows how long", running(0), nil, reprise.InProgress, job.Nack, time.Second},
		{"lapsed", found(store.ClaimResult{Outcome: store.Lapsed}, nil), nil, reprise.Lapsed, job.Park, 0},
		{"another message", func(ctx context.Context, d *doer) {
			other := d.op
			other.Fingerprint[0]++
			_, _ = job.Do(ctx, d.Engine, other, nil, func(context.Context) (int, error) { return 1, nil })
		}, nil, reprise.Mismatch, job.Park, 0},
		{"ended long ago", func(ctx context.Context, d *doer) {
			d.op.Horizon = time.Hour
			_, _ = job.Do(ctx, d.Engine, d.op, nil, func(context.Context) (receipt, error) { return receipt{}, nil })
			time.Sleep(retention)
		}, nil, reprise.Expired, job.Ack, 0},
		{"unreachable", unavailable(store.ErrUnavailable), store.ErrUnavailable, reprise.Unavailable, job.Nack, 2 * time.Second},
		{"unknown", unavailable(store.ErrUnknown), store.ErrUnknown, reprise.Unavailable, job.Nack, 2 * time.Second},
		{"closed", func(ctx context.Context, d *doer) { _ = d.Close(ctx) }, store.ErrClosed, reprise.Unavailable, job.Nack, 2 * time.Second},
		{"an unreadable record", unavailable(store.ErrCorrupt), store.ErrCorrupt, reprise.Corrupt, job.Park, 0},
		{"no payload", payload(""), store.ErrCorrupt, reprise.Corrupt, job.Park, 0},
		{"a payload of a guard", payload("\x01\x00\x00\xc8\x00\x00"), store.ErrCorrupt, reprise.Corrupt, job.Park, 0},
		{"another type", func(ctx context.Context, d *doer) {
			_, _ = job.Do(ctx, d.Engine, d.op, nil, func(context.Context) (string, error) { return "text", nil })
		}, store.ErrCorrupt, reprise.Corrupt, job.Park, 0},
		{"no key", func(_ context.Context, d *doer) { d.op.Key = "" }, store.ErrInvalid, reprise.KeyMissing, job.Park, 0},
		{"no scope", func(_ context.Context, d *doer) { d.op.Scope = "" }, store.ErrInvalid, reprise.Failed, job.Nack, 0},
		{"neither", func(_ context.Context, d *doer) { d.op.Scope, d.op.Key = "", "" }, store.ErrInvalid, reprise.Failed, job.Nack, 0},
		{"a retention out of range", func(_ context.Context, d *doer) { d.op.Retention = 11 * 365 * 24 * time.Hour }, store.ErrInvalid, reprise.Failed, job.Nack, 0},
		{"a horizon out of range, and no key", func(_ context.Context, d *doer) { d.op.Horizon, d.op.Key = -1, "" }, store.ErrInvalid, reprise.Failed, job.Nack, 0},
	} {
		inTime(t, r.name, func(t *testing.T) {
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

// The ends of the completion, for each result of fn.
func TestDoReportsTheEndOfTheCompletion(t *testing.T) {
	answer := func(context.Context) error { return job.Keep(errSoldOut) }
	failure := func(context.Context) error { return errSoldOut }
	refuse := func(err error) func(*doer) {
		return func(d *doer) {
			d.store.OnComplete = func(context.Context, store.CompleteRequest) error { return err }
		}
	}
	// lost answers that the lease is lost, and then that the record is in the given
	// state.
	lost := func(holder store.ClaimResult) func(*doer) {
		return func(d *doer) {
			d.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrLeaseLost }
			first := true
			d.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				if first {
					first = false
					return d.store.Store.Claim(ctx, r)
				}
				return holder, nil
			}
		}
	}
	kept := func(value receipt, err error) store.ClaimResult {
		return store.ClaimResult{Outcome: store.Completed, Payload: must(job.EncodeResult(receipts, value, err))}
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
		action   job.Action
		delay    time.Duration
	}{
		{"value/recorded", func(*doer) {}, succeed, 0, reprise.EndRecorded, 1, false, nil, job.Ack, 0},
		{"answer/recorded", func(*doer) {}, answer, reprise.EndRecorded, reprise.EndRecorded, 0, false, errSoldOut, job.Ack, 0},
		{"failure/recorded", func(*doer) {}, failure, reprise.EndRecorded, reprise.EndRecorded, 0, false, errSoldOut, job.Park, 0},

		{"value/unrecorded", refuse(store.ErrCorrupt), succeed, reprise.EndUnrecorded, reprise.EndUnrecorded, 1, false, store.ErrCorrupt, job.Ack, 0},
		{"answer/unrecorded", refuse(store.ErrClosed), answer, reprise.EndUnrecorded, reprise.EndUnrecorded, 0, false, errSoldOut, job.Ack, 0},
		{"failure/unrecorded", refuse(store.ErrClosed), failure, reprise.EndUnrecorded, reprise.EndUnrecorded, 0, false, errSoldOut, job.Park, 0},
		{"value/dropped later", refuse(store.ErrUnavailable), succeed, reprise.EndUnrecorded, reprise.EndDropped, 1, false, store.ErrUnavailable, job.Ack, 0},
		{"value/the key is another's", lost(store.ClaimResult{Outcome: store.Mismatch}), succeed, reprise.EndUnrecorded, reprise.EndUnrecorded, 1, false, store.ErrLeaseLost, job.Ack, 0},

		{"value/superseded by a value", lost(kept(receipt{Number: 9}, nil)), succeed, 0, reprise.EndSuperseded, 9, true, nil, job.Ack, 0},
		{"answer/superseded by a value", lost(kept(receipt{Number: 9}, nil)), answer, 0, reprise.EndSuperseded, 9, true, nil, job.Ack, 0},
		{"value/superseded by an answer", lost(kept(receipt{}, job.Keep(errSoldOut))), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, true, errSoldOut, job.Ack, 0},
		{"value/superseded by a failure", lost(kept(receipt{}, errSoldOut)), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, true, errSoldOut, job.Park, 0},
		{"value/superseded by garbage", lost(store.ClaimResult{Outcome: store.Completed}), succeed, reprise.EndSuperseded, reprise.EndSuperseded, 0, false, store.ErrCorrupt, job.Park, 0},

		{"value/after MaxRun", outran, succeed, reprise.EndUnknown, reprise.EndUnknown, 1, false, reprise.ErrRunTooLong, job.Ack, 0},
		{"answer/after MaxRun", outran, answer, reprise.EndUnknown, reprise.EndUnknown, 0, false, errSoldOut, job.Ack, 0},
		{"failure/after MaxRun", outran, failure, reprise.EndUnknown, reprise.EndUnknown, 0, false, errSoldOut, job.Park, 0},

		{"value/contested", lost(store.ClaimResult{Outcome: store.InProgress}), succeed, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, job.Nack, second},
		{"answer/contested", lost(store.ClaimResult{Outcome: store.Lapsed}), answer, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, job.Nack, second},
		{"failure/contested", lost(store.ClaimResult{Outcome: store.Lapsed}), failure, reprise.EndContested, reprise.EndContested, 0, false, store.ErrLeaseLost, job.Nack, second},
	} {
		inTime(t, r.name, func(t *testing.T) {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
		d.store.OnRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
		_, _, err := d.do(t.Context(), func(context.Context) error { return errAway })
		wantError(t, "Do", err, errAway)
		wantError(t, "its cause", doError(t, err).Cause, store.ErrUnavailable)
		wantSettlement(t, err, job.Nack, 0)
		d.store.Heal()
		time.Sleep(lease)
		if got, replayed, err := d.do(t.Context(), succeed); err != nil || replayed || got.Number != 2 {
			t.Error(got, replayed, err)
		}
	})
}

// A release that comes after the record says that the outcome is unknown releases
// nothing.
func TestDoReleaseThatComesTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoer(setup(t, reprise.Config{MaxRun: maxRun}), reprise.Recoverable)
		_, _, err := d.do(t.Context(), func(ctx context.Context) error {
			time.Sleep(maxRun + 2*lease)
			return context.Cause(ctx)
		})
		if e := doError(t, err); e.End != reprise.EndUnknown {
			t.Errorf("ended as %v, want %v", e.End, reprise.EndUnknown)
		}
		wantError(t, "Do", err, reprise.ErrRunTooLong)
		wantSettlement(t, err, job.Park, 0)
		d.wantUnknown(t, d.op, "ran longer than MaxRun")
	})
}

func TestDoWithoutProtection(t *testing.T) {
	for _, r := range []struct {
		name   string
		err    error
		status reprise.AttemptEnd
		action job.Action
	}{
		{"a value", nil, reprise.EndUnrecorded, job.Ack},
		{"an answer", job.Keep(errSoldOut), reprise.EndUnrecorded, job.Ack},
		{"an error", errSoldOut, 0, job.Nack},
		{"an unknown outcome", job.Unknown(errSoldOut), reprise.EndUnrecorded, job.Park},
	} {
		inTime(t, r.name, func(t *testing.T) {
			d := newDoer(setup(t, reprise.Config{}), reprise.Recoverable)
			d.op.FailOpen = true
			d.away(store.ErrUnavailable)
			got, err := d.result(t.Context(), func(context.Context) error { return r.err })
			wantSettlement(t, err, r.action, 0)
			if r.err == nil && (err != nil || got.Value != (receipt{Number: 1})) || r.err != nil && !errors.Is(err, errSoldOut) {
				t.Errorf("%+v, %v", got, err)
			}
			e := doError(t, cmp.Or(err, got.Unrecorded))
			if e.Outcome != reprise.Unprotected || e.End != r.status || e.Kept != (err != nil && r.action == job.Ack) || got.Replayed {
				t.Errorf("%+v, replayed %v", e, got.Replayed)
			}
			wantError(t, "the cause", e.Cause, store.ErrUnavailable)
		})
	}
}

func TestDoNeedsAnEngineAndAFunction(t *testing.T) {
	t.Parallel()
	e := newEngine(t, memstore.New(), reprise.Config{})
	fn := func(context.Context) (int, error) { return 1, nil }
	_, err := job.Do(t.Context(), nil, order("k"), nil, fn)
	wantError(t, "no engine", err, store.ErrInvalid)
	wantSettlement(t, err, job.Nack, 0)
	_, err = job.Do[int](t.Context(), e, order("k"), nil, nil)
	wantError(t, "no function", err, store.ErrInvalid)
	if job.Keep(nil) != nil || job.Retry(nil) != nil {
		t.Error("no error is an error")
	}
	wantSettlement(t, nil, job.Ack, 0)
	wantSettlement(t, errAway, job.Nack, 0)
	if got := fmt.Sprint(job.Ack, job.Nack, job.Park, job.Action(0)); got != "ack nack park invalid(0)" {
		t.Error(got)
	}
}

// Do commits a value with its effects, and keeps an error without them.
func TestDoInATransaction(t *testing.T) {
	for _, r := range []struct {
		name   string
		fails  error // the commit
		err    error // of fn
		end    reprise.AttemptEnd
		is     error
		action job.Action
		delay  time.Duration
		calls  []string
	}{
		{"committed", nil, nil, reprise.EndRecorded, nil, job.Ack, 0, []string{"close", "commit"}},
		{"answer", nil, job.Keep(errSoldOut), reprise.EndRecorded, errSoldOut, job.Ack, 0, []string{"close", "rollback", "complete"}},
		{"ended", store.ErrMisconfigured, errAway, reprise.EndUnknown, reprise.ErrTxEnded, job.Park, 0, []string{"close", "rollback"}},
		{"ended, a value", store.ErrMisconfigured, nil, reprise.EndUnknown, reprise.ErrTxEnded, job.Park, 0, []string{"close", "commit"}},
		{"ended, an answer", store.ErrMisconfigured, job.Keep(errAway), reprise.EndUnknown, reprise.ErrTxEnded, job.Park, 0, []string{"close", "rollback"}},
		{"rolled back", store.ErrNotApplied, nil, reprise.EndNotApplied, store.ErrNotApplied, job.Nack, time.Second, []string{"close", "commit"}},
		{"undecided", store.ErrUnknown, nil, reprise.EndUndecided, store.ErrUnknown, job.Nack, 2 * time.Second, []string{"close", "commit"}},
	} {
		inTime(t, r.name, func(t *testing.T) {
			b, st := setupTransacting(t)
			st.OnCommit, st.Undo = func() error { return r.fails }, r.fails
			d := newDoer(b, reprise.Recoverable)
			d.op.Transactional = true
			_, _, err := d.do(t.Context(), func(context.Context) error { return r.err })
			wantError(t, "Do", err, r.is)
			wantSettlement(t, err, r.action, r.delay)
			if !slices.Equal(st.Calls, r.calls) {
				t.Errorf("the transaction was called %v, want %v", st.Calls, r.calls)
			}
			if s := d.Stats(); s.Ends[r.end] != 1 {
				t.Errorf("ended as %v, want %v", s.Ends, r.end)
			}
		})
	}
}

func TestDoUnknown(t *testing.T) {
	unknown := func(context.Context) error { return fmt.Errorf("pay: %w", job.Unknown(errAway)) }
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		inTime(t, preset.String(), func(t *testing.T) {
			d := newDoer(setup(t, reprise.Config{}), preset)
			got, replayed, err := d.do(t.Context(), unknown)
			if e := doError(t, err); got.Number != 0 || replayed || e.Outcome != reprise.Claimed || e.End != reprise.EndUnknown || e.Kept || e.Cause != nil {
				t.Fatalf("%+v %v %+v", got, replayed, e)
			}
			wantError(t, "Do", err, errAway)
			wantSettlement(t, err, job.Park, 0)
			d.wantUnknown(t, d.op, "pay: the bank is away")
			_, _, err = d.do(t.Context(), unknown)
			if e := doError(t, err); e.Outcome != reprise.Lapsed {
				t.Fatalf("a later call: %+v", e)
			}
			wantSettlement(t, err, job.Park, 0)
			d.wantRuns(t, 1)
		})
	}
}
