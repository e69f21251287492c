package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

const (
	// long is a lease or a retention that does not end while a case runs.
	long = time.Hour

	// callLimit bounds each call to the store.
	callLimit = 10 * time.Second
)

// rig is what a case works with: the test it reports to, two handles on the store, and its clock.
type rig struct {
	testing.TB

	fixture Fixture
	one     reprise.Store
	two     reprise.Store
	shared  *rigState
}

type rigState struct {
	ahead time.Duration // by how much the store's clock was moved ahead of the wall clock

	mu   sync.Mutex
	held []party // whose claims were granted
}

func newRig(tb testing.TB, f Fixture) *rig {
	tb.Helper()
	if f.Grain == 0 {
		f.Grain = defaultGrain
	}
	return &rig{TB: tb, fixture: f, one: f.Open(tb), two: f.Open(tb), shared: &rigState{}}
}

// reportingTo returns the same rig for another test.
func (r *rig) reportingTo(tb testing.TB) *rig {
	other := *r
	other.TB = tb
	return &other
}

// leave ends what an Atomic store holds open for the claims of the case: transactions, and the connections below them.
func (r *rig) leave() {
	if !r.fixture.Atomic {
		return
	}
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	for _, p := range r.shared.held {
		ctx, cancel := r.call()
		_ = p.store.Release(ctx, p.id, p.owner) // of most there is nothing left; the fixture's cleanup finds what stays
		cancel()
	}
}

// lacks returns the first need that the fixture does not meet, and why.
func (r *rig) lacks(needs []conformance.Need) (why string, lacking bool) {
	for _, n := range needs {
		has := false
		switch n {
		case conformance.Leases:
			has = !r.fixture.Atomic
		case conformance.AtomicClaims:
			has = r.fixture.Atomic
		case conformance.ExactTime:
			has = r.fixture.Advance == nil
		case conformance.CorruptHook:
			has = r.fixture.Corrupt != nil
		case conformance.Waiter:
			_, has = reprise.As[reprise.Waiter](r.one)
		case conformance.Inspector:
			_, has = reprise.As[reprise.Inspector](r.one)
		case conformance.Purger:
			_, has = reprise.As[reprise.Purger](r.one)
		case conformance.Checker:
			_, has = reprise.As[reprise.Checker](r.one)
		case conformance.Binder:
			_, has = reprise.As[reprise.ContextBinder](r.one)
		}
		if !has {
			return fmt.Sprintf("%s, which this fixture does not have", n), true
		}
	}
	return "", false
}

// ability returns the ability T of a store that is known to have it, because the case needs it.
func ability[T any](store reprise.Store) T {
	found, ok := reprise.As[T](store)
	if !ok {
		panic("storetest: a case uses an ability that it does not name as a need")
	}
	return found
}

// short is a lease or a retention that ends with advance(short).
func (r *rig) short() time.Duration { return r.fixture.Grain }

// advance lets at least d pass on the store's clock.
func (r *rig) advance(d time.Duration) {
	r.Helper()
	if r.fixture.Advance == nil {
		conformance.Sleep(r, d) // in the bubble
		return
	}
	start := time.Now()
	r.fixture.Advance(r, d)
	if time.Since(start) < d { // it did not sleep
		r.shared.ahead += d
	}
}

// now returns the wall clock as far as the store's clock may have gone.
func (r *rig) now() time.Time { return time.Now().Add(r.shared.ahead) }

// unhurried runs a measurement that means something only if its calls took less time than it allows them, in proportion
// to d. It reports whether they did; if not, it is run again with more time.
func (r *rig) unhurried(measure func(d time.Duration) (inTime bool)) {
	r.Helper()
	d := r.short()
	for range 7 {
		if measure(d) {
			return
		}
		d *= 2
	}
	r.Fatalf("inconclusive: a few calls took longer than %v", d)
}

// call returns the context of one call.
func (r *rig) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), callLimit)
}

var sentinels = []error{
	reprise.ErrLeaseLost, reprise.ErrUnavailable, reprise.ErrUnknown, reprise.ErrNotApplied, reprise.ErrNotReplicated,
	reprise.ErrCorrupt, reprise.ErrFull, reprise.ErrMisconfigured, reprise.ErrInvalid, reprise.ErrClosed,
	reprise.ErrNotFound, reprise.ErrRecordChanged,
}

// checkError holds every error that a case meets to what the Store interface says of all of them. The secrets are what it
// must not show.
func (r *rig) checkError(what string, err error, secrets ...string) {
	r.Helper()
	if err == nil {
		return
	}
	var classes []error
	for _, s := range sentinels {
		if errors.Is(err, s) {
			classes = append(classes, s)
		}
	}
	if len(classes) != 1 {
		r.Errorf("%s: the error %q wraps the sentinels %q, want exactly one", what, err, classes)
	}
	for _, s := range secrets {
		if len(s) >= 8 && strings.Contains(err.Error(), s) {
			r.Errorf("%s: the error %q contains an owner or a payload", what, err)
		}
	}
}
