package reprise

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestNeverIsNotReached(t *testing.T) {
	t.Parallel()
	for _, at := range []instant{{}, now(), {mono: 1<<63 - 2, wall: 1<<63 - 2}} {
		if at.reached(never) {
			t.Errorf("reached at %v", at)
		}
		if earlier(at, never) != at || earlier(never, at) != at {
			t.Errorf("never is earlier than %v", at)
		}
	}
	if never.add(time.Hour) != never {
		t.Error("never plus an hour is not never")
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
