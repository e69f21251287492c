package reprise_test

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// Every claim of unknown outcome has to be released. A goroutine for each of them was 124
// MiB for 20,000, and 23,000 calls a second to a failing store. There are four when there
// is much to do, and never more.
func TestReleasesOfRefusedClaimsAreBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const claims = 20_000
		b := setup(t, reprise.Config{ClaimTimeout: 10 * time.Millisecond})
		away(b, store.ErrUnknown)
		var back atomic.Bool
		var calls, out, most atomic.Int64
		b.store.OnRelease = func(ctx context.Context, id store.ID, owner store.Owner) error {
			calls.Add(1)
			most.Store(max(most.Load(), out.Add(1)))
			time.Sleep(time.Millisecond)
			out.Add(-1)
			if back.Load() {
				return b.store.Store.Release(ctx, id, owner)
			}
			return store.ErrUnavailable
		}
		for i := range claims {
			_, err := b.Begin(t.Context(), order(strconv.Itoa(i)))
			wantError(t, "Begin", err, store.ErrUnknown)
		}
		s := b.Stats()
		if s.Background != 500 || s.BackgroundDropped != claims-500 {
			t.Errorf("%d in the background, %d dropped, want half of 1,000 and the others", s.Background, s.BackgroundDropped)
		}
		synctest.Wait() // the last event is on its way to the observer
		if n := b.events.count("dropped"); n != claims-500 {
			t.Errorf("%d reported as dropped", n)
		}
		time.Sleep(10 * time.Second)
		before := calls.Load()
		time.Sleep(time.Minute)
		if n := calls.Load() - before; n < 40 || n > 90 {
			t.Errorf("a store in trouble was called %d times a minute, want about 60 however many wait", n)
		}
		back.Store(true)
		time.Sleep(time.Minute)
		if s := b.Stats(); s.Background != 0 || most.Load() != 4 {
			t.Errorf("%d are left after the store is back; %d calls at once, want 4", s.Background, most.Load())
		}
	})
}

// 300 completions of 1 MiB that a full store refused held 316 MiB, and renewed their
// leases for ever.
func TestCompletionsThatAFullStoreRefusesAreBoundedAndLapse(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const attempts, size = 300, 1 << 20
		b := setup(t, reprise.Config{})
		b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrFull }
		payload := make([]byte, size)
		for i := range attempts {
			start := time.Now()
			got, err := b.claim(t, order(strconv.Itoa(i))).Complete(reprise.Completion{Payload: payload})
			if err != nil || got.End != reprise.EndUnrecorded || time.Since(start) > 0 {
				t.Fatalf("%v, %v after %v, want an answer at once: the store refuses for good", got, err, time.Since(start))
			}
		}
		s := b.Stats()
		if s.BackgroundBytes > 64<<20 || s.Background > 64 || s.BackgroundDropped < attempts-64 {
			t.Errorf("%+v, want 64 MiB at most", s)
		}
		time.Sleep(lease + 2*time.Second)
		if s := b.Stats(); s.Background != 0 || s.BackgroundBytes != 0 || s.Running != 0 || s.BackgroundDropped != attempts {
			t.Errorf("%+v after the leases, want nothing", s)
		}
		b.events.wantCount(t, "dropped", attempts)
		other := setupOver(t, b.store.Store, reprise.Config{})
		for i := range attempts {
			a := other.claim(t, order(strconv.Itoa(i)))
			if a.View().Number() != 2 {
				t.Fatalf("attempt %d, want 2", a.View().Number())
			}
			release(t, a)
		}
	})
}

func TestTaskWithoutRoomIsDroppedAndItsLeaseLapses(t *testing.T) {
	for name, limits := range map[string]reprise.BackgroundLimits{"tasks": {Tasks: 2}, "bytes": {Bytes: 12}} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{Background: limits})
			b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
			for i := range 3 {
				complete(t, b.claim(t, order(strconv.Itoa(i))), "answer", reprise.EndUnrecorded) // 6 bytes
			}
			time.Sleep(2 * lease)
			if s := b.Stats(); s.Background != 2 || s.BackgroundDropped != 1 || s.Running != 2 {
				t.Errorf("%+v, want 2 that are kept and 1 dropped", s)
			}
			b.want(t, order("0"), reprise.InProgress)
			second := b.claim(t, order("2"))
			if n := second.View().Number(); n != 2 {
				t.Errorf("attempt %d, want 2: the first lapsed", n)
			}
			release(t, second)
			b.store.Heal()
			time.Sleep(2 * time.Second)
			b.want(t, order("0"), reprise.Replayed)
			b.want(t, order("1"), reprise.Replayed)
		})
	}
}

// The renewal finds that the end of its own attempt took the record away, which is no
// loss, also where that end is then left to the background.
func TestReleaseThatRacesARenewalReportsNoLoss(t *testing.T) {
	for name, c := range map[string]struct {
		fails error // of the release, although the store executes it
		tx    bool  // it follows a commit that was not applied
		found bool  // by a store that released the record to be sure
	}{
		"a release":                        {},
		"one whose reply is lost":          {fails: store.ErrUnknown},
		"one of effects that are undone":   {tx: true},
		"likewise, whose reply is lost":    {tx: true, fails: store.ErrUnknown},
		"one by the store, before it says": {tx: true, found: true},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b, st := setupTransacting(t)
			renewing, released, answer := make(chan store.RenewRequest, 1), make(chan struct{}), make(chan struct{})
			b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				renewing <- rs[0]
				<-released
				return b.store.Store.Renew(ctx, rs)
			}
			once := sync.OnceFunc(func() { close(released); <-answer })
			b.store.OnRelease = func(ctx context.Context, id store.ID, owner store.Owner) error {
				err := b.store.Store.Release(ctx, id, owner)
				once()
				return cmp.Or(c.fails, err)
			}
			a := b.began(t, order("k"))
			renewal := <-renewing
			st.OnCommit = func() error {
				if c.found {
					wantError(t, "Release", b.store.Release(t.Context(), renewal.ID, renewal.Owner), nil)
				}
				return store.ErrNotApplied
			}
			end, ended := a.Release, make(chan error)
			if c.tx {
				end = func() error { complete(t, a, "answer", reprise.EndNotApplied); return c.fails }
			}
			go func() { ended <- end() }()
			synctest.Wait()
			wantCause(t, a.Context(), nil)
			close(answer)
			wantError(t, "the end", <-ended, c.fails)
			b.store.Heal()
			time.Sleep(time.Minute)
			b.events.wantCount(t, "lease-lost", 0)
			wantCause(t, a.Context(), context.Canceled)
			release(t, b.claim(t, order("k")))
		})
	}
}

// A claim of an operation that runs at most once blocks its key for the whole retention
// if it was written and is not released. So its release takes the place of one that
// matters less, and is repeated although its lease is over.
func TestUnknownClaimsThatWouldBlockTheirKeysComeFirst(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{Background: reprise.BackgroundLimits{Tasks: 12}})
		away(b, store.ErrUnknown)
		b.store.OnRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrMisconfigured }
		begin := func(n int, preset reprise.Preset) {
			for i := range n {
				op := order(strconv.Itoa(i))
				op.Preset = preset
				_, err := b.Begin(t.Context(), op)
				wantError(t, "Begin", err, store.ErrUnknown)
			}
		}
		begin(8, reprise.Recoverable)
		if s := b.Stats(); s.Background != 6 || s.BackgroundDropped != 2 {
			t.Errorf("%d are kept and %d dropped, want 6 and 2", s.Background, s.BackgroundDropped)
		}
		begin(8, reprise.AtMostOnce)
		if s := b.Stats(); s.Background != 9 || s.BackgroundDropped != 7 {
			t.Errorf("%d are kept and %d dropped, want 9 and 7", s.Background, s.BackgroundDropped)
		}
		synctest.Wait()
		if last := b.events.last(); !strings.Contains(last.Err.Error(), "until an operator resolves it") {
			t.Errorf("reported %v", last.Err)
		}
		time.Sleep(2 * lease)
		if s := b.Stats(); s.Background != 3 {
			t.Errorf("%d are kept after the leases, want 3", s.Background)
		}
		b.store.Heal()
		time.Sleep(10 * time.Second)
		if s := b.Stats(); s.Background != 0 || s.BackgroundDropped != 13 {
			t.Errorf("%+v, want nothing left", s)
		}
	})
}

// A release that a store refuses is repeated until the claim, which may have been written
// at the end of its budget, has lapsed.
func TestReleaseOfAnUnknownClaimIsRepeatedUntilItHasLapsed(t *testing.T) {
	for heals, dropped := range map[time.Duration]uint64{lease + time.Second/2: 0, lease + 2*budget: 1} {
		inTimeNamed(t, heals.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			away(b, store.ErrUnknown)
			b.store.OnRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrMisconfigured }
			_, err := b.Begin(t.Context(), order("k"))
			wantError(t, "Begin", err, store.ErrUnknown)
			time.Sleep(heals)
			b.store.Heal()
			time.Sleep(10 * time.Second)
			if s := b.Stats(); s.BackgroundDropped != dropped || s.Background != 0 {
				t.Errorf("%d dropped and %d held, want %d and 0", s.BackgroundDropped, s.Background, dropped)
			}
			released := uint64(b.events.count("released"))
			if given := uint64(b.events.count("dropped")); given != dropped || released != 1-dropped {
				t.Errorf("reported %d times as released and %d times as dropped", released, given)
			}
		})
	}
}

// A completion that the store refuses is given up when its lease is lost, at once; one
// that is on its way to the store then, when it has its result.
func TestRefusedCompletionIsGivenUpWithItsLease(t *testing.T) {
	for name, takes := range map[string]time.Duration{"waiting": 0, "on its way": 3 * time.Second} {
		inTimeNamed(t, name, func(t *testing.T) {
			at := map[string][]time.Duration{}
			var mu sync.Mutex
			began := time.Now()
			b := setup(t, reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
				mu.Lock()
				defer mu.Unlock()
				at[e.Name()] = append(at[e.Name()], time.Since(began))
			})})
			b.store.OnComplete = func(context.Context, store.CompleteRequest) error {
				if time.Since(began) > lease-margin-2*time.Second {
					time.Sleep(takes)
				}
				return store.ErrFull
			}
			complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
			time.Sleep(2 * lease)
			mu.Lock()
			defer mu.Unlock()
			lost, dropped := at["lease-lost"], at["dropped"]
			if len(dropped) != 1 || len(lost) > 1 {
				t.Fatalf("lost at %v, given up at %v, want once", lost, dropped)
			}
			early, late := lease-margin, lease-margin+takes
			if dropped[0] < early || dropped[0] > late {
				t.Errorf("given up after %v, want %v to %v", dropped[0], early, late)
			}
			if s := b.Stats(); s.Background != 0 || s.BackgroundDropped != 1 || s.Running != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestTaskIsGivenUpAtItsAge(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{Background: reprise.BackgroundLimits{Age: time.Minute}})
		unrenewed(b)
		b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		time.Sleep(time.Minute - time.Second)
		b.events.wantCount(t, "dropped", 0)
		time.Sleep(time.Minute)
		b.events.wantCount(t, "dropped", 1)
		if last := b.events.of(t, "dropped"); !strings.Contains(last.Err.Error(), "did not take it in time") {
			t.Errorf("reported %v", last.Err)
		}
	})
}
