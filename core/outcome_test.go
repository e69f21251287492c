package reprise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Logs, metrics, dashboards and alerts rely on these names. Each enum is without gaps.
func TestNamesInLogsAndMetrics(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]any{
		"[claimed in-progress replayed mismatch lapsed expired unprotected unavailable corrupt key-missing key-invalid" +
			" scope-missing too-large request-invalid internal-error]": Outcomes(),
		"[recorded released unrecorded superseded contested not-applied undecided dropped unknown]": AttemptEnds(),
		"[invalid(0) invalid(16) invalid(10)]":                                                      []fmt.Stringer{Outcome(0), Failed + 1, EndUnknown + 1},
		"[recoverable at-most-once]":                                                                []Preset{Recoverable, AtMostOnce},
		"[claimed in-progress completed mismatch lapsed expired invalid(7)]": []store.Outcome{
			store.Claimed, store.InProgress, store.Completed, store.Mismatch, store.Lapsed, store.Expired, store.Expired + 1,
		},
		"[renewed busy completed lost]": []store.RenewStatus{store.Renewed, store.RenewBusy, store.RenewCompleted, store.RenewLost},
		"[warning unsafe]":              []store.Severity{store.Warning, store.Unsafe},
	} {
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// So are those of events. Every other event has the name of its outcome, end or kind.
func TestNamesOfEvents(t *testing.T) {
	t.Parallel()
	list := []Event{{Outcome: Claimed, Attempt: 1}, {Outcome: Claimed, Attempt: 2}, {End: EndRecorded}}
	for _, outcome := range Outcomes()[1:] {
		list = append(list, Event{Outcome: outcome})
	}
	for _, end := range AttemptEnds()[1:] {
		list = append(list, Event{End: end})
	}
	for _, kind := range []*EventKind{EventRenewed, EventLeaseLost, EventRunTooLong, EventStoreError, EventResolved, EventDeclared, {Name: "of-a-policy"}} {
		list = append(list, Event{Kind: kind})
	}
	const want = "claimed takeover completed in-progress replayed mismatch lapsed expired unprotected" +
		" refused refused refused refused refused refused refused refused" +
		" released unrecorded superseded contested not-applied undecided dropped unknown" +
		" renewed lease-lost run-too-long store-error resolved declared of-a-policy"
	for i, name := range strings.Fields(want) {
		if got := list[i].Name(); got != name || len(list) != len(strings.Fields(want)) {
			t.Errorf("%v, %v: %q, want %q", list[i].Outcome, list[i].End, got, name)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	const again, holds, end, refused, opens = 1, 2, 4, 8, 16 // repeatClaim, mayHold, repeatEnd, refused, unreachable
	for _, c := range []struct {
		err  error
		want int
	}{
		{store.ErrUnavailable, again | end | opens},
		{store.ErrBusy, again | end},
		{store.ErrUnknown, again | holds | end | opens},
		{store.ErrNotReplicated, again | holds | end},
		{store.ErrFull, end | refused},
		{store.ErrMisconfigured, end | refused},
		{store.ErrLeaseLost, 0},
		{store.ErrNotApplied, 0},
		{store.ErrCorrupt, 0},
		{store.ErrInvalid, 0},
		{store.ErrClosed, 0},
		// Two at once break the contract, and the careful reading is the one that
		// releases, or that does not fail open.
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrUnknown), again | holds | end | opens},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrBusy), again | end},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrNotReplicated), again | holds | end},
	} {
		f, known := classify(fmt.Errorf("wrapped: %w", c.err))
		got := 0
		for bit, set := range map[int]bool{again: f.repeatClaim, holds: f.mayHold, end: f.repeatEnd, refused: f.refused, opens: f.unreachable} {
			if set {
				got |= bit
			}
		}
		if !known || got != c.want {
			t.Errorf("%v: known %v, %04b, want %04b", c.err, known, got, c.want)
		}
	}
	for _, err := range []error{nil, errors.New("another"), store.ErrNotFound, store.ErrRecordChanged, ErrRunTooLong, errDropped} {
		if _, known := classify(err); known {
			t.Errorf("%v is known", err)
		}
	}
}

// mute is a store that must not be called.
type mute struct{ store.Store }

// renewing returns a renewer of leases of 30 s, the goroutine of which is not started,
// and which of its attempts it cancelled.
func renewing(t *testing.T) (r *renewer, add func(deadline, renewAt, runUntil instant) *Attempt, cancelled func() []*Attempt) {
	t.Helper()
	e := must(New(mute{}, Config{}))
	var list []*Attempt
	e.renewer.started = true
	add = func(deadline, renewAt, runUntil instant) *Attempt {
		c := newCall(t.Context(), e, &Operation{Scope: "s", Key: "k"}, now())
		a := newAttempt(&c)
		if !e.renewer.add(e.base, a, deadline, renewAt, runUntil) {
			t.Fatal("not added")
		}
		list = append(list, a)
		return a
	}
	return e.renewer, add, func() []*Attempt {
		return slices.DeleteFunc(slices.Clone(list), func(a *Attempt) bool { return !errors.Is(context.Cause(&a.run), store.ErrLeaseLost) })
	}
}

// The machine slept for a minute: the monotonic clock stood still, and the wall clock did
// not.
func TestAfterASuspensionEveryLeaseIsLookedAt(t *testing.T) {
	t.Parallel()
	r, add, cancelled := renewing(t)
	r.tick(false)
	before := now()
	const slept = time.Minute
	before.wall -= int64(slept)
	r.skew -= slept // as if the last tick had been before the suspension

	lost := []*Attempt{
		add(before.add(20*time.Second), before.add(10*time.Second), never),
		add(before.add(25*time.Second), before.add(9*time.Second), never),
	}
	after := now()
	// One that started since hides the others in the order by the monotonic clock.
	fresh := add(after.add(27*time.Second), after.add(10*time.Second), after.add(time.Second))
	renewal := add(before.add(80*time.Second), before.add(10*time.Second), never)

	sleep, batch := r.tick(false)
	got := cancelled()
	if len(got) != 2 || !slices.Contains(got, lost[0]) || !slices.Contains(got, lost[1]) {
		t.Errorf("cancelled %d attempts, want the 2 whose leases ran out meanwhile", len(got))
	}
	if len(batch) != 1 || batch[0] != renewal {
		t.Errorf("renews %d leases, want the one that is due", len(batch))
	}
	if sleep <= 0 || sleep > time.Second {
		t.Errorf("sleeps %v, want until the fresh one is due", sleep)
	}
	if fresh.lease.index < 0 || len(r.due) != 2 {
		t.Errorf("%d are left, want the fresh one and the one that is renewed", len(r.due))
	}
}

// Setting the wall clock back extends no deadline, and setting it back and forth takes
// none away.
func TestAWallClockSetBackExtendsNothing(t *testing.T) {
	t.Parallel()
	r, add, cancelled := renewing(t)
	r.tick(false)
	ahead := now()
	ahead.wall += int64(time.Hour)
	r.skew += time.Hour
	passed := ahead
	passed.mono -= 30 * time.Second
	lost, kept := add(passed.add(27*time.Second), passed.add(10*time.Second), never), add(ahead.add(27*time.Second), ahead.add(10*time.Second), never)
	r.tick(false)
	if got := cancelled(); len(got) != 1 || got[0] != lost {
		t.Errorf("cancelled %d attempts, want the one whose lease ran out", len(got))
	}
	if kept.lease.index < 0 {
		t.Error("the other is gone")
	}
}
