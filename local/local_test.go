package repriselocal_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	repriselocal "github.com/reprise-go/reprise/local"
)

// The first replay asks the store as without the cache, the second one for the validity
// too, and the others do not ask.
func TestAReplayNeedsNoStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one, two := open(t, inner, repriselocal.Config{}), open(t, inner, repriselocal.Config{})
		var asked []bool
		inner.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
			asked = append(asked, r.Validity)
			return inner.Store.Claim(ctx, r)
		}
		r := request(1)
		run(t, one, r, "answer")
		for _, s := range []*repriselocal.Store{one, two} {
			for range 5 {
				replay(t, s, r, "answer")
			}
			claim(t, s, r, reprise.Completed) // its owner too
		}
		if want := []bool{false, false, true, false, true}; !slices.Equal(asked, want) {
			t.Errorf("the claims that reached the server asked for the validity %v, want %v", asked, want)
		}
		if got := two.Stats(); got.Hits != 4 || got.Misses != 2 || got.Bytes != repriselocal.EntryOverhead+int64(len("answer")) {
			t.Errorf("%+v", got)
		}
	})
}

// A new key costs no more than without the cache: neither its completion nor its first
// replay enters, and nothing is asked that the store would not be asked anyway.
func TestANewKeyEntersNothing(t *testing.T) {
	t.Parallel()
	inner := newServer()
	one := open(t, inner, repriselocal.Config{})
	inner.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
		if r.Validity {
			t.Errorf("the server was asked for the validity of %x", r.ID[:1])
		}
		return inner.Store.Claim(ctx, r)
	}
	for i := range 100 {
		run(t, one, request(byte(i)), "answer")
		replay(t, one, request(byte(i)), "answer")
	}
	if got := one.Stats(); got != (repriselocal.Stats{Misses: 200}) {
		t.Errorf("%+v", got)
	}
}

func TestADifferentRequestIsAMismatchWithoutTheStore(t *testing.T) {
	t.Parallel()
	inner := newServer()
	one, two := open(t, inner, repriselocal.Config{}), open(t, inner, repriselocal.Config{})
	r := request(1)
	run(t, one, r, "answer")
	other := rival(r)
	other.Fingerprint[31]++
	warm(t, one, r, "answer")
	warm(t, two, r, "answer")
	inner.wantClaims(t, 5)
	for _, s := range []reprise.Store{one, two} {
		if got := claim(t, s, other, reprise.Mismatch); got.Payload != nil {
			t.Errorf("a mismatch with the payload %q", got.Payload)
		}
	}
	inner.wantClaims(t, 0)
}

// The life of an entry counts from before the call that it is the answer to.
func TestNoEntryOutlivesItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one, two := open(t, inner, repriselocal.Config{MaxAge: time.Hour}), open(t, inner, repriselocal.Config{MaxAge: time.Hour})
		for _, slow := range []time.Duration{0, time.Second} { // a round trip
			r := request(1)
			r.Retention = time.Minute
			run(t, inner, r, "answer")
			completed := time.Now()
			inner.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
				time.Sleep(slow)
				defer time.Sleep(slow)
				return inner.Store.Claim(ctx, r)
			}
			warm(t, one, r, "answer")
			time.Sleep(30 * time.Second)
			warm(t, two, r, "answer")
			time.Sleep(time.Until(completed.Add(r.Retention)) - slow - 1)
			inner.claims.Store(0)
			replay(t, one, r, "answer")
			replay(t, two, r, "answer")
			inner.wantClaims(t, 0)
			time.Sleep(slow + 1)
			inner.onClaim = nil
			again := rival(r)
			claim(t, one, again, reprise.Claimed)
			claim(t, two, rival(r), reprise.InProgress)
			if err := one.Release(t.Context(), again.ID, again.Owner); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A completion whose reply was lost is repeated, and the store keeps the first answer.
// Its buffer may be used again. So what is replayed is what the store says, and never
// what an attempt wrote.
func TestARepeatedCompletionIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	inner := newServer()
	one := open(t, inner, repriselocal.Config{})
	r := request(1)
	claim(t, one, r, reprise.Claimed)
	inner.onComplete = func(ctx context.Context, r reprise.CompleteRequest) error {
		return errors.Join(reprise.ErrUnknown, inner.Store.Complete(ctx, r))
	}
	c := completion(r, "first")
	if err := one.Complete(t.Context(), c); !errors.Is(err, reprise.ErrUnknown) {
		t.Fatalf("complete: %v", err)
	}
	copy(c.Payload, "xxxxx")
	inner.onComplete = nil
	complete(t, one, r, "second")
	for range 4 {
		replay(t, one, r, "first")
		complete(t, one, r, "third")
	}
}

// What happens to a completed record behind the back of the process has an effect within
// MaxAge.
func TestMaxAgeBoundsAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one, two := open(t, inner, repriselocal.Config{}), open(t, inner, repriselocal.Config{MaxAge: time.Minute})
		r := request(1)
		run(t, one, r, "answer")
		warm(t, one, r, "answer")
		time.Sleep(5 * time.Second)
		warm(t, two, r, "answer")
		inner.loseRecords()
		time.Sleep(5*time.Second - 1)
		replay(t, one, r, "answer")
		time.Sleep(time.Nanosecond)
		again := rival(r)
		claim(t, one, again, reprise.Claimed)
		time.Sleep(55*time.Second - 1)
		replay(t, two, r, "answer")
		time.Sleep(time.Nanosecond)
		claim(t, two, rival(r), reprise.InProgress)
	})
}

// An operator resolves what lapsed, which an entry knows nothing of: its record was lost.
func TestAResolutionHasAnEffectAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one := open(t, inner, repriselocal.Config{MaxAge: time.Hour})
		resolve := func(r reprise.ClaimRequest) {
			t.Helper()
			inner.loseRecords()
			other := rival(r)
			granted := claim(t, inner.Store, other, reprise.Claimed)
			time.Sleep(other.Lease)
			inspector, _ := reprise.As[reprise.Inspector](one)
			err := inspector.Resolve(t.Context(), r.ID, reprise.Resolution{Fence: granted.Fence, Payload: []byte("resolved"), Retention: retention})
			if err != nil {
				t.Fatal(err)
			}
		}
		r := request(1)
		run(t, one, r, "answer")
		warm(t, one, r, "answer")
		inner.claims.Store(0)
		replay(t, one, r, "answer")
		inner.wantClaims(t, 0)
		resolve(r)
		replay(t, one, r, "resolved")

		// An answer that was on its way during the resolution does not come back with it.
		r = request(2)
		run(t, one, r, "answer")
		warm(t, one, r, "answer")
		inner.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
			got, err := inner.Store.Claim(ctx, r)
			inner.onClaim = nil
			resolve(r)
			return got, err
		}
		time.Sleep(2 * time.Hour) // the entry ends, and the record with it
		run(t, inner.Store, rival(r), "answer")
		replay(t, one, r, "answer")
		replay(t, one, r, "resolved")
	})
}

// A lapsed record that another process takes over is no entry, and a new attempt after
// the retention is not answered by the old one.
func TestWhatIsNotCompletedIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one := open(t, inner, repriselocal.Config{})
		r := request(1)
		claim(t, one, r, reprise.Claimed)
		for range 2 {
			claim(t, one, rival(r), reprise.InProgress)
		}
		time.Sleep(r.Lease)
		for range 2 {
			claim(t, one, rival(r), reprise.Lapsed)
		}
		inner.wantClaims(t, 5)
		next := rival(r)
		next.Takeover = true
		claim(t, inner, next, reprise.Claimed)
		complete(t, inner, next, "next")
		if err := one.Complete(t.Context(), completion(r, "late")); !errors.Is(err, reprise.ErrLeaseLost) {
			t.Errorf("complete: %v, want ErrLeaseLost", err)
		}
		replay(t, one, r, "next")
	})
}

// Who asks for the validity gets it, from an entry as from the store: never too long, and
// an age that is never too old.
func TestAnEntryKnowsItsValidity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		one, two := open(t, inner, repriselocal.Config{}), open(t, inner, repriselocal.Config{})
		r := request(1)
		run(t, one, r, "answer")
		asking := rival(r)
		asking.Validity = true
		replay(t, one, r, "answer")
		replay(t, two, r, "answer")
		for passed := time.Duration(0); passed < 8*time.Second; passed += time.Second {
			for _, s := range []reprise.Store{one, two} {
				got := claim(t, s, asking, reprise.Completed)
				if got.Validity != retention-passed || got.Age != passed {
					t.Errorf("after %v: validity %v and age %v of %v", passed, got.Validity, got.Age, retention)
				}
				if got := claim(t, s, rival(r), reprise.Completed); got.Validity != 0 || got.Age != 0 {
					t.Errorf("nobody asked: validity %v and age %v", got.Validity, got.Age)
				}
			}
			time.Sleep(time.Second)
		}
		inner.wantClaims(t, 5)
	})
}

// A horizon is decided as without the cache, also by its entries.
func TestAHorizonOverTheCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newServer()
		engine, err := reprise.New(open(t, inner, repriselocal.Config{MaxAge: time.Hour}), reprise.Config{Observer: reprise.Silent})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = engine.Close(t.Context()) }()
		begin := func(want reprise.Outcome) reprise.Result {
			t.Helper()
			got, err := engine.Begin(t.Context(), reprise.Operation{Scope: "s", Key: "k", Retention: time.Minute, Horizon: time.Minute})
			if err != nil || got.Outcome != want {
				t.Fatalf("began %v, %v; want %v", got.Outcome, err, want)
			}
			return got
		}
		if _, err := begin(reprise.Claimed).Attempt.Complete(reprise.Completion{Payload: []byte("answer")}); err != nil {
			t.Fatal(err)
		}
		begin(reprise.Completed)
		begin(reprise.Completed)
		time.Sleep(time.Minute - 1)
		begin(reprise.Completed)
		time.Sleep(time.Nanosecond)
		begin(reprise.Expired)
		time.Sleep(time.Minute - 1)
		begin(reprise.Expired)
		inner.wantClaims(t, 3)
		time.Sleep(time.Nanosecond)
		if err := begin(reprise.Claimed).Attempt.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

// A store that does not say how long a record stays valid is asked each time.
func TestAStoreWithoutValidityIsNotCached(t *testing.T) {
	t.Parallel()
	inner := newServer()
	inner.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
		r.Validity = false
		return inner.Store.Claim(ctx, r)
	}
	r := request(1)
	run(t, inner, r, "answer")
	one := open(t, inner, repriselocal.Config{})
	for range 3 {
		replay(t, one, r, "answer")
	}
	inner.wantClaims(t, 4)
}

func TestFailuresPass(t *testing.T) {
	t.Parallel()
	inner := newServer()
	one := open(t, inner, repriselocal.Config{})
	r := request(1)
	run(t, one, r, "answer")
	warm(t, one, r, "answer")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Claim(ended, rival(r)); !errors.Is(err, reprise.ErrUnavailable) {
		t.Errorf("claim with an ended context: %v, want ErrUnavailable", err)
	}
	for _, invalid := range []reprise.ClaimRequest{{}, {ID: r.ID}} {
		if _, err := one.Claim(t.Context(), invalid); !errors.Is(err, reprise.ErrInvalid) {
			t.Errorf("an invalid claim: %v", err)
		}
	}
	inner.onClaim = func(context.Context, reprise.ClaimRequest) (reprise.ClaimResult, error) {
		return reprise.ClaimResult{}, reprise.ErrUnavailable
	}
	if _, err := one.Claim(t.Context(), request(2)); !errors.Is(err, reprise.ErrUnavailable) {
		t.Errorf("claim while the store is away: %v", err)
	}
	replay(t, one, r, "answer") // which needs no store
}

// The cache is bounded in bytes, one entry an ID, and one payload does not drive out all
// others.
func TestMemoryIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("memory is that of a program without the race detector")
	}
	const most = 8 << 20
	inner := &server{onComplete: func(context.Context, reprise.CompleteRequest) error { return nil }}
	inner.onClaim = func(_ context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
		return reprise.ClaimResult{Outcome: reprise.Completed, Payload: make([]byte, 300), Validity: time.Hour}, nil
	}
	one := open(t, inner, repriselocal.Config{MaxBytes: most, MaxAge: time.Hour})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := request(0)
	for i := range 60_000 {
		r.ID = sha256.Sum256(strconv.AppendInt(nil, int64(i), 10))
		for range 3 {
			claim(t, one, r, reprise.Completed)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used, stats := int64(after.HeapAlloc)-int64(before.HeapAlloc), one.Stats()
	t.Logf("%+v, %d bytes of heap", stats, used)
	if stats.Bytes > most || used > most*5/4 {
		t.Errorf("%d bytes by its own count, %d of heap; want at most %d", stats.Bytes, used, most)
	}
	if stats.Bytes < most*9/10 || used < most/2 {
		t.Errorf("%d bytes by its own count, %d of heap, of %d: EntryOverhead is too large", stats.Bytes, used, most)
	}
	runtime.KeepAlive(one)

	large := request(1)
	inner.onClaim = func(_ context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
		return reprise.ClaimResult{Outcome: reprise.Completed, Payload: make([]byte, most/16+1), Validity: time.Hour}, nil
	}
	inner.claims.Store(0)
	for range 3 {
		claim(t, one, large, reprise.Completed)
	}
	inner.wantClaims(t, 3)
}

func TestNothingRunsInTheBackground(t *testing.T) {
	before := runtime.NumGoroutine()
	one := open(t, memstore.New(), repriselocal.Config{})
	for i := range 100 {
		run(t, one, request(byte(i)), "answer")
		warm(t, one, request(byte(i)), "answer")
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// bare is a store without abilities.
type bare struct{ reprise.Store }

func TestAbilitiesAreThoseOfTheStoreInside(t *testing.T) {
	t.Parallel()
	one, poor := open(t, memstore.New(), repriselocal.Config{}), open(t, bare{memstore.New()}, repriselocal.Config{})
	check := func(name string, has, lacks bool) {
		t.Helper()
		if !has || lacks {
			t.Errorf("%s: found %v over a store that has it, %v over one that does not", name, has, lacks)
		}
	}
	_, has := reprise.As[reprise.Inspector](one)
	_, lacks := reprise.As[reprise.Inspector](poor)
	check("Inspector", has, lacks)
	_, has = reprise.As[reprise.Waiter](one)
	_, lacks = reprise.As[reprise.Waiter](poor)
	check("Waiter", has, lacks)
	_, has = reprise.As[reprise.Purger](one)
	_, lacks = reprise.As[reprise.Purger](poor)
	check("Purger", has, lacks)
	meter, has := reprise.As[reprise.Meter](one)
	_, lacks = reprise.As[reprise.Meter](poor)
	check("Meter", has, lacks)
	check("ValueIgnorer", one.IgnoresValues() == one, poor.IgnoresValues() != nil)
	run(t, one, request(1), "answer")
	warm(t, one, request(1), "answer")
	replay(t, one, request(1), "answer")
	if got := fmt.Sprint(meter.Usage()); !strings.Contains(got, "{records 1 ") || !strings.Contains(got, "{local-hits 1 ") ||
		!strings.Contains(got, "{local-misses 3 ") || !strings.Contains(got, "{local-bytes 326 33554432 ") {
		t.Errorf("usage %s", got)
	}
	if _, err := poor.Inspect(t.Context(), reprise.ID{}); !errors.Is(err, reprise.ErrInvalid) {
		t.Errorf("inspect: %v", err)
	}
	if _, err := poor.List(t.Context(), reprise.Query{}); !errors.Is(err, reprise.ErrInvalid) {
		t.Errorf("list: %v", err)
	}
	if err := poor.Resolve(t.Context(), reprise.ID{}, reprise.Resolution{}); !errors.Is(err, reprise.ErrInvalid) {
		t.Errorf("resolve: %v", err)
	}
	if got := poor.Usage(); len(got) != 3 {
		t.Errorf("usage %v", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []repriselocal.Config{
		{MaxBytes: -1}, {MaxBytes: 64<<10 - 1}, {MaxBytes: 1<<40 + 1}, {MaxAge: -1}, {MaxAge: time.Millisecond - 1}, {MaxAge: time.Hour + 1},
	} {
		if _, err := repriselocal.New(memstore.New(), c); !errors.Is(err, reprise.ErrInvalid) || !strings.Contains(err.Error(), "Config.Max") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := repriselocal.New(nil, repriselocal.Config{}); !errors.Is(err, reprise.ErrInvalid) {
		t.Errorf("no store: %v", err)
	}
}

// Many callers at once, with resolutions in between: for the race detector.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	one := open(t, memstore.New(), repriselocal.Config{MaxBytes: 64 << 10})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				r := request(byte(i % 50))
				got, err := one.Claim(t.Context(), r)
				switch {
				case err != nil:
					t.Error(err)
				case got.Outcome == reprise.Claimed:
					_ = one.Complete(t.Context(), completion(r, "answer"))
				case got.Outcome == reprise.Completed && string(got.Payload) != "answer":
					t.Errorf("replayed %q", got.Payload)
				}
				if i%100 == g {
					_ = one.Resolve(t.Context(), r.ID, reprise.Resolution{Fence: 1, Forget: true})
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkReplay(b *testing.B) {
	one := open(b, memstore.New(), repriselocal.Config{})
	r := request(1)
	run(b, one, r, "answer")
	warm(b, one, r, "answer")
	b.ReportAllocs()
	for b.Loop() {
		if got, err := one.Claim(b.Context(), r); err != nil || got.Outcome != reprise.Completed {
			b.Fatal(got, err)
		}
	}
}

// BenchmarkNewKey is what the cache adds to a new key: the store inside does nothing.
func BenchmarkNewKey(b *testing.B) {
	inner := &server{onComplete: func(context.Context, reprise.CompleteRequest) error { return nil }}
	inner.onClaim = func(_ context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
		return reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: 1, Fence: 1, Remaining: r.Lease}, nil
	}
	payload := make([]byte, 400)
	for name, store := range map[string]reprise.Store{"without": inner, "with": open(b, inner, repriselocal.Config{})} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := request(1)
				for pb.Next() {
					r.Owner = reprise.NewOwner()
					copy(r.ID[:], r.Owner[:])
					if got, err := store.Claim(b.Context(), r); err != nil || got.Outcome != reprise.Claimed {
						b.Error(got, err)
						return
					}
					c := reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: payload, Retention: r.Retention}
					if err := store.Complete(b.Context(), c); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
