package reprise_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// listed is a store whose listings a test counts, delays and fails.
type listed struct {
	*memstore.Store

	pages int64 // of a listing that has the same records in each; 0: those of the store
	calls atomic.Int64
	takes atomic.Int64
	err   atomic.Pointer[error]
}

func (l *listed) List(ctx context.Context, q store.Query) (store.Page, error) {
	calls := l.calls.Add(1)
	time.Sleep(time.Duration(l.takes.Load()))
	if err := l.err.Load(); err != nil {
		return store.Page{}, *err
	}
	q.After = ""
	page, err := l.Store.List(ctx, q)
	if l.pages > 0 && calls%l.pages != 0 {
		page.Next = "more"
	}
	return page, err
}

// leave leaves a record behind as a process does that died, or that does not know the
// outcome.
func leave(t *testing.T, st store.Store, label string, n int, atMostOnce, unknown bool) {
	t.Helper()
	for i := range n {
		r := store.ClaimRequest{
			ID: store.DeriveID("tenant", fmt.Sprint(label, atMostOnce, unknown), strconv.Itoa(i)), Owner: store.NewOwner(),
			Policy: store.Policy{Label: label, AtMostOnce: atMostOnce, Retention: 24 * time.Hour}, Lease: time.Second,
		}
		must(st.Claim(t.Context(), r))
		if unknown {
			wantError(t, "Unknown", st.Unknown(t.Context(), store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "the bank timed out"}), nil)
		}
	}
}

// stuckOf returns the counts that are not zero as a text, and "none" from a process that
// does not count.
func stuckOf(e *reprise.Engine) string {
	counts, ok := e.Stuck()
	if !ok {
		return "none"
	}
	var list []string
	for _, c := range counts {
		if c.Count > 0 {
			list = append(list, fmt.Sprintf("%s %v %d", c.Label, c.State, c.Count))
		}
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// read lets a time pass, in which the counts are read every half minute.
func read(d time.Duration, engines ...*reprise.Engine) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(30*time.Second, time.Until(end))) {
		for _, e := range engines {
			_, _ = e.Stuck()
		}
	}
}

// A process that serves no request counts the records that others left behind, from the
// first time that it is asked on. A retry takes a lapsed record of the other preset over.
func TestStuckRecordsAreCountedInTheStore(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := &listed{Store: memstore.New()}
		leave(t, st, "payments", 3, true, false)
		leave(t, st, "payments", 2, false, true)
		leave(t, st, "refunds", 4, false, false)
		e := newEngine(t, &decorator{st}, nil, reprise.Config{})
		e.Declare("refunds")
		time.Sleep(time.Hour)
		if n := st.calls.Load(); n != 0 {
			t.Errorf("%d listings of a process whose count is not read", n)
		}
		leave(t, st, "payments", 3, true, false) // their leases have not run out
		if got := stuckOf(e); got != "none" {
			t.Errorf("before the first count: %s", got)
		}
		synctest.Wait()
		if got := stuckOf(e); got != "[payments unknown 2]" && got != "[payments lapsed 3 payments unknown 2]" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := stuckOf(e); got != "[payments lapsed 3 payments unknown 2]" {
			t.Errorf("after five minutes: %s", got)
		}
		counts, _ := e.Stuck()
		if !slices.Contains(counts, reprise.StuckCount{Label: "refunds", State: store.StateLapsed}) {
			t.Errorf("a label without stuck records is not there: %v", counts)
		}
		read(24*time.Hour, e) // their retention
		synctest.Wait()
		if got := stuckOf(e); got != "[]" {
			t.Errorf("after their retention: %s", got)
		}
		calls := st.calls.Load()
		if calls < 280 || calls > 300 {
			t.Errorf("%d listings in a day, want one every five minutes", calls)
		}
		time.Sleep(24 * time.Hour)
		if n := st.calls.Load() - calls; n > 3 {
			t.Errorf("%d listings in a day in which nobody reads the count", n)
		}
	})
}

// One process counts. When it dies or closes, another one does soon after, and two never
// report at once.
func TestOneProcessCountsStuckRecords(t *testing.T) {
	inTime(t, func(t *testing.T) {
		shared := memstore.New()
		leave(t, shared, "payments", 1, true, false)
		time.Sleep(time.Second)
		var dead atomic.Bool // the store of the first process is away
		gone := &hooked{Store: shared}
		gone.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if dead.Load() {
				return nil, store.ErrUnavailable
			}
			return shared.Renew(ctx, rs)
		}
		gone.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if dead.Load() {
				return store.ClaimResult{}, store.ErrUnavailable
			}
			return shared.Claim(ctx, r)
		}
		gone.OnRelease = func(ctx context.Context, id store.ID, owner store.Owner) error {
			if dead.Load() {
				return store.ErrUnavailable
			}
			return shared.Release(ctx, id, owner)
		}
		first := newEngine(t, hookedLists{gone, shared}, nil, reprise.Config{})
		others := []*reprise.Engine{newEngine(t, shared, nil, reprise.Config{}), newEngine(t, shared, nil, reprise.Config{})}
		reporting := func() (list []*reprise.Engine) {
			synctest.Wait()
			for _, e := range append(others, first) {
				if got := stuckOf(e); got == "[payments lapsed 1]" {
					list = append(list, e)
				} else if got != "none" {
					t.Errorf("a process counts %s", got)
				}
			}
			if len(list) > 1 {
				t.Errorf("%d processes report", len(list))
			}
			return list
		}
		// after lets a time pass, in which at most one process reports.
		after := func(d time.Duration) *reprise.Engine {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) {
				_ = reporting()
			}
			list := reporting()
			if len(list) != 1 {
				t.Fatalf("after %v no process reports", d)
			}
			return list[0]
		}
		_, _ = first.Stuck()
		if after(time.Hour) != first {
			t.Error("another process took the count over")
		}
		dead.Store(true)
		second := after(2 * time.Minute)
		if second == first {
			t.Fatal("a process without its store reports")
		}
		wantError(t, "Close", closeWithin(t, second, time.Minute), nil)
		if third := after(35 * time.Second); third == first || third == second {
			t.Error("a closed process reports")
		}
	})
}

// A process whose metrics are no longer read, such as one that a network keeps from its
// Prometheus, leaves the count to one that is read. It takes it again when that has gone.
func TestProcessWhoseCountIsReadCountsStuckRecords(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		leave(t, st, "payments", 1, true, true)
		first, second := newEngine(t, st, nil, reprise.Config{}), newEngine(t, st, nil, reprise.Config{})
		_, _ = first.Stuck()
		synctest.Wait()
		read(9*time.Minute, second)
		if got := stuckOf(second); got != "none" {
			t.Errorf("two processes count: %s", got)
		}
		read(2*time.Minute, second)
		if got := stuckOf(second); got != "[payments unknown 1]" {
			t.Errorf("the one that is read counts %s", got)
		}
		time.Sleep(11 * time.Minute)
		read(2*time.Minute, first)
		if got := stuckOf(first); got != "[payments unknown 1]" {
			t.Errorf("read again, the first one counts %s", got)
		}
	})
}

// hookedLists is a hooked store whose listings are those of another.
type hookedLists struct {
	*hooked
	store.Inspector
}

// A listing of many pages keeps the store busy for a tenth of the time, and the lock for
// all of it. One that fails has no result, and is tried again.
func TestCountOfStuckRecordsIsSlow(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := &listed{Store: memstore.New(), pages: 100}
		leave(t, st, "payments", 2, true, true)
		e, other := newEngine(t, st, nil, reprise.Config{}), newEngine(t, st, nil, reprise.Config{})
		st.takes.Store(int64(time.Second))
		_, _ = e.Stuck()
		time.Sleep(time.Second)
		for range 98 {
			read(10*time.Second, e)
			if counts, ok := other.Stuck(); ok {
				t.Fatalf("another process counts %v", counts)
			}
		}
		if n, got := st.calls.Load(), stuckOf(e); n < 95 || n > 99 || got != "none" {
			t.Errorf("%d pages in the time of 99, and %s", n, got)
		}
		time.Sleep(time.Minute)
		if got := stuckOf(e); got != "[payments unknown 2]" { // which each page showed
			t.Errorf("the first count is %s", got)
		}

		st.takes.Store(int64(3 * time.Minute)) // a process that hangs
		time.Sleep(6*time.Minute + 30*time.Second)
		if got := stuckOf(e); got != "none" {
			t.Errorf("without its lock, the process counts %s", got)
		}
		st.takes.Store(0)
		read(30*time.Minute, e, other)
		denied := fmt.Errorf("%w: this user has no permission to scan", store.ErrMisconfigured)
		st.err.Store(&denied)
		read(10*time.Minute, e, other)
		calls := st.calls.Load()
		read(30*time.Minute, e, other)
		if e, o := stuckOf(e), stuckOf(other); e != "none" || o != "none" || st.calls.Load() != calls {
			t.Errorf("a count that failed is %s and %s", e, o)
		}
		st.err.Store(nil)
		read(2*time.Hour, e, other)
		if e, o := stuckOf(e), stuckOf(other); (e == "none") == (o == "none") {
			t.Errorf("after the failure, the processes count %s and %s", e, o)
		}
	})
}

// The records of every page are counted, each once.
func TestEveryPageOfStuckRecordsIsCounted(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		leave(t, st, "payments", store.MaxPage+1, true, false)
		e := newEngine(t, st, nil, reprise.Config{})
		read(10*time.Minute, e)
		if got, want := stuckOf(e), fmt.Sprintf("[payments lapsed %d]", store.MaxPage+1); got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
	})
}

// A count that fails leaves no gauge behind for an alert, so the log for operators says
// so, for any reason. It is not for ever: another try of this process succeeds, or
// another process keeps the lock for longer than one that fails.
func TestProcessThatCouldNotCountStuckRecordsLearnsThatOthersDo(t *testing.T) {
	inTime(t, func(t *testing.T) {
		shared := memstore.New()
		failing := &listed{Store: shared}
		late, text := fmt.Errorf("%w: canceling statement due to statement timeout", store.ErrUnavailable), &buffer{}
		failing.err.Store(&late)
		log := reprise.Config{Log: slog.New(slog.NewTextHandler(text, nil)), MaxRun: time.Hour}
		first, second := newEngine(t, failing, nil, log), newEngine(t, shared, nil, reprise.Config{})
		read(9*time.Minute, first)
		if got := text.String(); strings.Count(got, "stuck records could not be counted") != 2 || !strings.Contains(got, "statement timeout") {
			t.Errorf("logged %s", got)
		}
		if !first.Stats().Uncounted || second.Stats().Uncounted {
			t.Errorf("after a failure: %t, and without a try: %t", first.Stats().Uncounted, second.Stats().Uncounted)
		}
		read(2*time.Hour, first, second)
		if first.Stats().Uncounted || second.Stats().Uncounted {
			t.Errorf("while another counts: %t, and that one: %t", first.Stats().Uncounted, second.Stats().Uncounted)
		}
		wantError(t, "Close", closeWithin(t, second, time.Minute), nil)
		read(2*time.Hour, first)
		if !first.Stats().Uncounted {
			t.Error("alone again, the process that cannot count does not say so")
		}
		failing.err.Store(nil)
		read(2*time.Hour, first)
		if first.Stats().Uncounted {
			t.Error("a process that counts says that it cannot")
		}
	})
}
