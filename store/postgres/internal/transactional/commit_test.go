package transactional

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestCommitIsNotAppliedOnlyByTheServersWord: a wrong ErrNotApplied makes a client pay
// twice.
func TestCommitIsNotAppliedOnlyByTheServersWord(t *testing.T) {
	t.Parallel()
	const own, keep, commit = 0, 1, 2 // the step that failed, of three
	for _, test := range []struct {
		err  error
		step int
		want error
	}{
		{io.ErrUnexpectedEOF, commit, store.ErrUnknown},
		{context.DeadlineExceeded, commit, store.ErrUnknown},
		{safeToRetry{}, commit, store.ErrUnknown},
		{io.ErrUnexpectedEOF, own, store.ErrUnknown}, // the rest was sent with it
		{pgtest.ServerError("FATAL", "57P01"), commit, store.ErrUnknown},
		{pgtest.ServerError("ERROR", "08006"), commit, store.ErrUnknown},
		{pgtest.ServerError("ERROR", "23503"), commit, store.ErrNotApplied},
		{pgtest.ServerError("ERROR", wire.CodeTaken), keep, store.ErrNotApplied},
		{pgtest.ServerError("FATAL", wire.CodeIdleTimeout), own, store.ErrNotApplied},
		{pgtest.ServerError("ERROR", wire.CodeDivisionByZero), own, store.ErrMisconfigured},
		{pgtest.ServerError("ERROR", wire.CodeDivisionByZero), keep, store.ErrNotApplied},
		{pgtest.ServerError("ERROR", wire.CodeDivisionByZero), commit, store.ErrNotApplied}, // of a deferred trigger
		{pgtest.ServerError("ERROR", wire.CodeSerialization), commit, store.ErrNotApplied},
		{pgtest.ServerError("ERROR", wire.CodeNoTx), own, store.ErrMisconfigured},
	} {
		got := failCommit(test.err, test.step, keep, commit)
		if !errors.Is(got, test.want) {
			t.Errorf("%v in step %d: %v, want %v", test.err, test.step, got, test.want)
		}
		taken := test.step == keep && wire.HasCode(test.err, wire.CodeTaken, wire.CodeDivisionByZero)
		if strings.Contains(got.Error(), "another attempt has the record") != taken {
			t.Errorf("%v in step %d: %v, and another attempt has the record: %t", test.err, test.step, got, taken)
		}
	}
}

// safeToRetry is the error of pgx for a statement that was not sent.
type safeToRetry struct{}

func (safeToRetry) Error() string { return "conn closed" }

func (safeToRetry) SafeToRetry() bool { return true }
