package reprise_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// batches remembers the renewals that a store was asked for.
type batches struct {
	mu   sync.Mutex
	at   []time.Time
	size []int
}

func (s *batches) add(rs []store.RenewRequest) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.size = append(s.at, time.Now()), append(s.size, len(rs))
	return len(s.at)
}

func (s *batches) get() (at []time.Time, size []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at), slices.Clone(s.size)
}

// statuses answers a whole batch alike.
func statuses(n int, status store.RenewStatus) []store.RenewStatus {
	return slices.Repeat([]store.RenewStatus{status}, n)
}

func TestLeaseIsRenewedAtAThird(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var renewals batches
		b.store.onRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			renewals.add(rs)
			return b.store.Store.Renew(ctx, rs)
		}
		other := setupOver(t, b.store.Store, reprise.Config{})
		last := time.Now()
		a := b.claim(t, order("k"))
		for range 200 {
			time.Sleep(lease / 2)
			other.want(t, order("k"), reprise.InProgress)
		}
		wantCause(t, a.Context(), nil)
		at, _ := renewals.get()
		if len(at) < 250 {
			t.Fatalf("%d renewals in 100 leases, want about 300", len(at))
		}
		for _, at := range at {
			if d := at.Sub(last); d < 9*time.Second || d > 11*time.Second {
				t.Fatalf("renewed after %v, want a third of the lease give or take a tenth", d)
			}
			last = at
		}
		complete(t, a, "answer", reprise.EndRecorded)
		time.Sleep(lease)
		if after, _ := renewals.get(); len(after) != len(at) {
			t.Error("renewed after its completion")
		}
		if n := b.events.count("renewed"); n != len(at) {
			t.Errorf("%d renewals reported, want %d", n, len(at))
		}
	})
}

func TestDueLeasesAreRenewedInOneBatch(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		const n = 500
		var renewals batches
		hold := make(chan struct{})
		b.store.onRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if renewals.add(rs) == 1 {
				<-hold // until all others are due
			}
			return b.store.Store.Renew(ctx, rs)
		}
		attempts := make([]*reprise.Attempt, n)
		for i := range attempts {
			attempts[i] = b.claim(t, order(strconv.Itoa(i)))
		}
		time.Sleep(lease/3 + lease/30)
		synctest.Wait()
		if _, size := renewals.get(); len(size) != 1 {
			t.Fatalf("batches of %v at once, want one", size)
		}
		close(hold)
		time.Sleep(lease / 10)
		_, size := renewals.get()
		total := 0
		for _, s := range size {
			total += s
		}
		if total != n || len(size) > 6 {
			t.Errorf("batches of %v, want %d in 6 at most", size, n)
		}
		for _, a := range attempts {
			release(t, a)
		}
	})
}

// Handlers are cancelled in time while the store hangs on a batch, also by a store that
// does not even heed its context.
func TestBatchThatHangsDelaysNoCancellation(t *testing.T) {
	for name, heed := range map[string]bool{"heeds its context": true, "does not": false} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var mu sync.Mutex
			out, most := 0, 0
			let := make(chan struct{})
			b.store.onRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				mu.Lock()
				out++
				most = max(most, out)
				mu.Unlock()
				start := time.Now()
				if heed {
					<-ctx.Done()
				} else {
					<-let
				}
				if took := time.Since(start); errors.Is(ctx.Err(), context.DeadlineExceeded) && heed && took != lease/6 {
					t.Errorf("a renewal may take %v, want a sixth of the lease", took)
				}
				mu.Lock()
				out--
				mu.Unlock()
				return nil, store.ErrUnknown
			}
			first := b.claim(t, order("first"))
			time.Sleep(lease / 4)
			second := b.claim(t, order("second"))
			time.Sleep(lease*3/4 - margin - time.Millisecond)
			wantCause(t, first.Context(), nil)
			b.want(t, order("first"), reprise.InProgress)
			time.Sleep(time.Millisecond)
			wantCause(t, first.Context(), store.ErrLeaseLost)
			wantCause(t, second.Context(), nil)
			time.Sleep(lease / 4)
			wantCause(t, second.Context(), store.ErrLeaseLost)
			mu.Lock()
			if most != 1 {
				t.Errorf("%d batches at once, want one", most)
			}
			mu.Unlock()
			close(let)
			release(t, first)
			release(t, second)
			b.events.wantCount(t, "lease-lost", 2)
		})
	}
}

func TestStatusesOfARenewal(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error)
		lostAt time.Duration // the latest; zero: never
	}{
		{"busy twice, then renewed", func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if try%3 != 0 {
				return statuses(len(rs), store.RenewBusy), nil
			}
			return nil, nil
		}, 0},
		{"failed twice, then renewed", func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if try%3 != 0 {
				return nil, store.ErrUnknown
			}
			return nil, nil
		}, 0},
		{"lost", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), store.RenewLost), nil
		}, lease/3 + lease/30},
		{"always busy", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), store.RenewBusy), nil
		}, lease - margin},
		{"always unavailable", func(int, []store.RenewRequest) ([]store.RenewStatus, error) {
			return nil, store.ErrUnavailable
		}, lease - margin},
		{"of another length", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs)+1, store.Renewed), nil
		}, lease - margin},
		{"no answer that there is", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), 0), nil
		}, lease - margin},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var renewals batches
			b.store.onRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				got, err := c.answer(renewals.add(rs), rs)
				if got == nil && err == nil {
					return b.store.Store.Renew(ctx, rs)
				}
				return got, err
			}
			a, start := b.claim(t, order("k")), time.Now()
			if c.lostAt == 0 {
				time.Sleep(10 * lease)
				wantCause(t, a.Context(), nil)
			} else {
				<-a.Context().Done()
				wantCause(t, a.Context(), store.ErrLeaseLost)
				if took := time.Since(start); took > c.lostAt {
					t.Errorf("cancelled after %v, want %v at most", took, c.lostAt)
				}
				b.events.wantCount(t, "lease-lost", 1)
			}
			b.store.heal()
			complete(t, a, "answer", reprise.EndRecorded) // not taken over
		})
	}
}

func TestDeadlineIsOnTimeInTheShortestLease(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{Lease: time.Second})
		b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
			return nil, store.ErrUnavailable
		}
		a, start := b.claim(t, order("k")), time.Now()
		<-a.Context().Done()
		if took := time.Since(start); took != 750*time.Millisecond {
			t.Errorf("cancelled after %v, want 750ms", took)
		}
		release(t, a)
	})
}
