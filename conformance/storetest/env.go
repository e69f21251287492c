package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// callLimit bounds each call to the store. A busy machine takes long for a batch of a
// thousand.
const callLimit = time.Minute

// env is the environment of a case: the test that it reports to, two handles on the
// store, and its clock.
type env struct {
	testing.TB

	fixture Fixture
	grain   time.Duration // of this run of the case
	one     store.Store
	two     store.Store
	ahead   time.Duration // by how much the store's clock was moved ahead of the wall clock
}

func newEnv(tb testing.TB, f Fixture) *env {
	tb.Helper()
	if f.Grain == 0 {
		f.Grain = defaultGrain
	}
	return &env{TB: tb, fixture: f, grain: f.Grain, one: f.Open(tb), two: f.Open(tb)}
}

// reportingTo returns the same env for another test.
func (e *env) reportingTo(tb testing.TB) *env {
	other := *e
	other.TB = tb
	return &other
}

// lacks returns the first need that the fixture does not meet, and why.
func (e *env) lacks(needs []conformance.Need) (why string, lacking bool) {
	for _, n := range needs {
		has := false
		switch n {
		case conformance.ExactTime:
			has = e.fixture.Advance == nil
		case conformance.CorruptHook:
			has = e.fixture.Corrupt != nil
		case conformance.Waiter:
			_, has = store.As[store.Waiter](e.one)
		case conformance.Inspector:
			_, has = store.As[store.Inspector](e.one)
		case conformance.Counter:
			_, has = store.As[store.Counter](e.one)
		case conformance.Purger:
			_, has = store.As[store.Purger](e.one)
		case conformance.Checker:
			_, has = store.As[store.Checker](e.one)
		case conformance.Meter:
			_, has = store.As[store.Meter](e.one)
		case conformance.Transactor:
			has = e.fixture.Effects != nil
		}
		if !has {
			return fmt.Sprintf("%s, which this fixture does not have", n), true
		}
	}
	return "", false
}

// ability returns the ability T of a store that is known to have it, because the case
// needs it.
func ability[T any](st store.Store) T {
	found, ok := store.As[T](st)
	if !ok {
		panic("storetest: a case uses an ability that it does not name as a need")
	}
	return found
}

// advance lets at least d pass on the store's clock.
func (e *env) advance(d time.Duration) {
	e.Helper()
	if e.fixture.Advance == nil {
		conformance.Sleep(e, d) // in the bubble
		return
	}
	start := time.Now()
	e.fixture.Advance(e, d)
	if time.Since(start) < d { // it did not sleep
		e.ahead += d
	}
}

// now returns the wall clock as far as the store's clock may have gone.
func (e *env) now() time.Time { return time.Now().Add(e.ahead) }

// call returns the context of one call.
func (e *env) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(e.Context()), callLimit)
}

var sentinels = []error{
	store.ErrLeaseLost, store.ErrUnavailable, store.ErrBusy, store.ErrUnknown, store.ErrNotApplied, store.ErrNotReplicated,
	store.ErrCorrupt, store.ErrFull, store.ErrMisconfigured, store.ErrInvalid, store.ErrClosed,
	store.ErrNotFound, store.ErrRecordChanged,
}

// checkError holds every error that a case meets to the Store interface's rules for all
// errors. The secrets must not occur in it.
func (e *env) checkError(what string, err error, secrets ...string) {
	e.Helper()
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
		e.Errorf("%s: the error %q wraps the sentinels %q, want exactly one", what, err, classes)
	}
	for _, s := range secrets {
		if len(s) >= 8 && strings.Contains(err.Error(), s) {
			e.Errorf("%s: the error %q contains an owner or a payload", what, err)
		}
	}
}
