package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
)

func TestFailuresWrapOneSentinel(t *testing.T) {
	t.Parallel()
	raced := errors.New("deadlock")
	d := &Dialect{Name: "db", Classify: func(err error, committing bool) error {
		if errors.Is(err, raced) {
			return ErrLostRace
		}
		if committing {
			return store.ErrUnknown
		}
		return store.ErrFull
	}}
	for _, c := range []struct {
		err               error
		statement, commit error
	}{
		{nil, nil, nil},
		{store.ErrLeaseLost, store.ErrLeaseLost, store.ErrLeaseLost},
		{errors.New("of the driver"), store.ErrFull, store.ErrUnknown},
		{context.DeadlineExceeded, store.ErrUnavailable, store.ErrUnknown},
		{driver.ErrBadConn, store.ErrUnavailable, store.ErrUnknown},
		{sql.ErrConnDone, store.ErrUnavailable, store.ErrUnknown},
		{ErrLostRace, store.ErrBusy, store.ErrBusy}, // for ErrUnavailable a guard with FailOpen runs its handler
		{raced, store.ErrBusy, store.ErrBusy},
	} {
		if got := d.Fail("claim", c.err); !errors.Is(got, c.statement) {
			t.Errorf("%v of a statement: %v, want %v", c.err, got, c.statement)
		}
		if got := d.FailCommit("claim", c.err); !errors.Is(got, c.commit) {
			t.Errorf("%v of a commit: %v, want %v", c.err, got, c.commit)
		}
	}
	for err, want := range map[error]error{
		&batching.Error{Err: context.Canceled}:             store.ErrBusy,
		&batching.Error{Sent: true, Err: context.Canceled}: store.ErrUnknown,
		&batching.Error{Err: batching.ErrUnfinished}:       store.ErrUnavailable,
		store.ErrFull: store.ErrFull,
	} {
		if got := d.QueueError("claim", err); !errors.Is(got, want) {
			t.Errorf("%v of the queue: %v, want %v", err, got, want)
		}
	}
}
