package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

func TestFailureHasTheClassOfItsCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want error // of a commit; that of a statement is ErrUnavailable where it is ErrUnknown
	}{
		{"nothing is known", io.ErrUnexpectedEOF, store.ErrUnknown},
		{"the context ended", context.DeadlineExceeded, store.ErrUnknown},
		{"undone: cancelled", serverError("ERROR", "57014"), store.ErrUnavailable},
		{"undone: read-only", serverError("ERROR", "25006"), store.ErrUnavailable},
		{"undone: serialization", serverError("ERROR", "40001"), sqlstore.ErrLostRace},
		{"undone: deadlock", serverError("ERROR", "40P01"), sqlstore.ErrLostRace},
		{"undone: a lock was not free", serverError("ERROR", "55P03"), sqlstore.ErrLostRace},
		{"undone: disk full", serverError("ERROR", "53100"), store.ErrFull},
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
			err := fmt.Errorf("wrapped: %w", test.err)
			for committing, want := range map[bool]error{true: test.want, false: test.want} {
				if !committing && errors.Is(want, store.ErrUnknown) {
					want = store.ErrUnavailable
				}
				if got := classify(err, committing); !errors.Is(got, want) {
					t.Errorf("committing %t: %v, want %v", committing, got, want)
				}
			}
			got := (&sqlstore.Dialect{Classify: classify, Advice: advice}).FailCommit("claim", err)
			if errors.Is(got, test.err) || strings.Contains(fmt.Sprintf("%+v", got), "secret") {
				t.Errorf("%v gives the driver's error away", got)
			}
		})
	}
}

// TestAdviceNamesTheRemedy: where the schema or a privilege is missing, and nowhere else.
func TestAdviceNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		codeNoTable: "run reprisepg.Migrate", codeNoColumn: "run reprisepg.Migrate", codeNoFunction: "run reprisepg.Migrate",
		codeNoSchema: "run reprisepg.Migrate", codeNoPrivilege: "what reprisepg.Grants returns", "53100": "",
	} {
		if got := advice("claim", serverError("ERROR", code)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestAcquireFailureIsDefinite: only a wait that the caller's deadline ended is blamed on
// the pool, and it says how full that is.
func TestAcquireFailureIsDefinite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		used int
		of   int
		want error
		says string
	}{
		{context.DeadlineExceeded, 4, 4, store.ErrBusy, "within 1s (4 are in use; the limit is 4)"},
		{context.DeadlineExceeded, 3, 0, store.ErrUnavailable, "(3 are in use; the limit is 0)"},
		{context.Canceled, 4, 4, store.ErrBusy, ""},
		{io.EOF, 4, 4, store.ErrUnavailable, "no connection: EOF"},
		{serverError("FATAL", "53300"), 0, 0, store.ErrUnavailable, ""},
		{serverError("FATAL", "28P01"), 0, 0, store.ErrMisconfigured, ""},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, serverError("FATAL", "57P03")), 4, 4, store.ErrUnavailable, "no connection: "},
		{fmt.Errorf("%w: postgres: another driver", store.ErrMisconfigured), 0, 0, store.ErrMisconfigured, "another driver: claim"},
	} {
		if got := failAcquire("claim", test.err, time.Second, test.used, test.of); !errors.Is(got, test.want) || !strings.Contains(got.Error(), test.says) {
			t.Errorf("%v, want %v and %q", got, test.want, test.says)
		}
	}
}
