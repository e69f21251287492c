package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/core/store"
)

func serverError(severity, code string) error {
	return &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity, Code: code, Message: "said", Detail: "Failing row contains (secret)."}
}

func TestClassOfFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"nothing is known", io.ErrUnexpectedEOF, store.ErrUnknown},
		{"the context ended", context.DeadlineExceeded, store.ErrUnknown},
		{"undone: cancelled", serverError("ERROR", "57014"), store.ErrUnavailable},
		{"undone: read-only", serverError("ERROR", "25006"), store.ErrUnavailable},
		{"undone: serialization", serverError("ERROR", codeSerialization), store.ErrUnavailable},
		{"undone: disk full", serverError("ERROR", codeDiskFull), store.ErrFull},
		{"undone: data corrupted", serverError("ERROR", "XX001"), store.ErrCorrupt},
		{"undone: index corrupted", serverError("ERROR", "XX002"), store.ErrCorrupt},
		{"an internal error says nothing of the record", serverError("ERROR", "XX000"), store.ErrUnknown},
		{"session ended: terminated", serverError("FATAL", "57P01"), store.ErrUnknown},
		{"session ended: crash", serverError("WARNING", "57P02"), store.ErrUnknown},
		{"session ended: panic", serverError("PANIC", "XX000"), store.ErrUnknown},
		{"a pooler lost the server", serverError("ERROR", "08P01"), store.ErrUnknown},
		{"no code", serverError("ERROR", ""), store.ErrUnknown},
		{"no table", serverError("ERROR", "42P01"), store.ErrMisconfigured},
		{"no privilege", serverError("ERROR", "42501"), store.ErrMisconfigured},
		{"no schema", serverError("ERROR", "3F000"), store.ErrMisconfigured},
		{"no database", serverError("FATAL", "3D000"), store.ErrMisconfigured},
		{"wrong password", serverError("FATAL", "28P01"), store.ErrMisconfigured},
		{"no such prepared statement", serverError("ERROR", "26000"), store.ErrMisconfigured},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := fail("claim", fmt.Errorf("wrapped: %w", test.err))
			if !errors.Is(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
			if errors.Is(got, test.err) || strings.Contains(fmt.Sprintf("%+v", got), "secret") {
				t.Errorf("%v gives the driver's error away", got)
			}
		})
	}
}

func TestNoConnectionIsDefinite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want error
	}{
		{context.DeadlineExceeded, store.ErrUnavailable},
		{io.EOF, store.ErrUnavailable},
		{serverError("FATAL", "53300"), store.ErrUnavailable},
		{serverError("FATAL", "57P03"), store.ErrUnavailable},
		{serverError("FATAL", "28P01"), store.ErrMisconfigured},
	} {
		if got := failAcquire("claim", test.err, time.Second, poolUse{limit: 4, used: 4}); !errors.Is(got, test.want) {
			t.Errorf("%v, want %v", got, test.want)
		}
	}
}

// TestWhatAQueueEndedIsUnknownOnceItWasSent: a call that nobody sent did nothing, and an
// error of the store stays what it is.
func TestWhatAQueueEndedIsUnknownOnceItWasSent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ err, want error }{
		{&batching.Error{Err: context.Canceled}, store.ErrUnavailable},
		{&batching.Error{Sent: true, Err: context.Canceled}, store.ErrUnknown},
		{fmt.Errorf("%w: postgres: batch: full", store.ErrFull), store.ErrFull},
	} {
		if got := queueError("claim", test.err); !errors.Is(got, test.want) || errors.Is(got, context.Canceled) {
			t.Errorf("%v, want %v", got, test.want)
		}
	}
	if got := queueError("claim", nil); got != nil {
		t.Errorf("success became %v", got)
	}
}

// TestAdviceNamesTheRemedy: where the schema or a privilege is missing, and nowhere else.
func TestAdviceNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		codeNoTable: "run reprisepg.Migrate", codeNoColumn: "run reprisepg.Migrate", codeNoFunction: "run reprisepg.Migrate",
		codeNoSchema: "run reprisepg.Migrate", codeNoPrivilege: "what reprisepg.Grants returns", codeDiskFull: "",
	} {
		if got := advice(serverError("ERROR", code)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestAnErrorOfAPoolSaysHowFullItIs: only a wait that the caller's deadline ended is
// blamed on the pool.
func TestAnErrorOfAPoolSaysHowFullItIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		use  poolUse
		want string
	}{
		{context.DeadlineExceeded, poolUse{limit: 4, used: 4}, "within 1s (pool has 4, all in use)"},
		{context.DeadlineExceeded, poolUse{limit: 4, used: 3}, "within 1s (pool has 4, 3 in use)"},
		{context.DeadlineExceeded, poolUse{used: 3}, "within 1s (3 in use, no limit)"},
		{io.EOF, poolUse{limit: 4, used: 4}, "no connection: EOF"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, serverError("FATAL", "57P03")), poolUse{limit: 4, used: 4}, "no connection: "},
		{fmt.Errorf("%w: postgres: another driver", store.ErrMisconfigured), poolUse{}, "another driver: claim"},
	} {
		if got := failAcquire("claim", test.err, time.Second, test.use).Error(); !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

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
		{serverError("FATAL", "57P01"), commit, store.ErrUnknown},
		{serverError("ERROR", "08006"), commit, store.ErrUnknown},
		{serverError("ERROR", "23503"), commit, store.ErrNotApplied},
		{serverError("ERROR", codeTaken), keep, store.ErrNotApplied},
		{serverError("FATAL", codeIdleTimeout), own, store.ErrNotApplied},
		{serverError("ERROR", codeDivisionByZero), own, store.ErrMisconfigured},
		{serverError("ERROR", codeDivisionByZero), keep, store.ErrNotApplied},
		{serverError("ERROR", codeDivisionByZero), commit, store.ErrNotApplied}, // of a deferred trigger
		{serverError("ERROR", codeSerialization), commit, store.ErrNotApplied},
		{serverError("ERROR", codeNoTx), own, store.ErrMisconfigured},
	} {
		got := failCommit(test.err, test.step, keep, commit)
		if !errors.Is(got, test.want) {
			t.Errorf("%v in step %d: %v, want %v", test.err, test.step, got, test.want)
		}
		taken := test.step == keep && hasCode(test.err, codeTaken, codeDivisionByZero)
		if strings.Contains(got.Error(), "another attempt has the record") != taken {
			t.Errorf("%v in step %d: %v, and another attempt has the record: %t", test.err, test.step, got, taken)
		}
	}
}

// safeToRetry is what pgx says when it does not know better.
type safeToRetry struct{}

func (safeToRetry) Error() string     { return "conn closed" }
func (safeToRetry) SafeToRetry() bool { return true }
