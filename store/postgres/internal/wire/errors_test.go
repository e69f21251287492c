package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

func TestFailureHasTheClassOfItsCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"nothing is known", io.ErrUnexpectedEOF, store.ErrUnknown},
		{"the context ended", context.DeadlineExceeded, store.ErrUnknown},
		{"undone: cancelled", pgtest.ServerError("ERROR", "57014"), store.ErrUnavailable},
		{"undone: read-only", pgtest.ServerError("ERROR", "25006"), store.ErrUnavailable},
		{"undone: serialization", pgtest.ServerError("ERROR", CodeSerialization), store.ErrUnavailable},
		{"undone: disk full", pgtest.ServerError("ERROR", CodeDiskFull), store.ErrFull},
		{"undone: data corrupted", pgtest.ServerError("ERROR", "XX001"), store.ErrCorrupt},
		{"undone: index corrupted", pgtest.ServerError("ERROR", "XX002"), store.ErrCorrupt},
		{"an internal error says nothing of the record", pgtest.ServerError("ERROR", "XX000"), store.ErrUnknown},
		{"session ended: terminated", pgtest.ServerError("FATAL", "57P01"), store.ErrUnknown},
		{"session ended: crash", pgtest.ServerError("WARNING", "57P02"), store.ErrUnknown},
		{"session ended: panic", pgtest.ServerError("PANIC", "XX000"), store.ErrUnknown},
		{"a pooler lost the server", pgtest.ServerError("ERROR", "08P01"), store.ErrUnknown},
		{"no code", pgtest.ServerError("ERROR", ""), store.ErrUnknown},
		{"no table", pgtest.ServerError("ERROR", "42P01"), store.ErrMisconfigured},
		{"no privilege", pgtest.ServerError("ERROR", "42501"), store.ErrMisconfigured},
		{"no schema", pgtest.ServerError("ERROR", "3F000"), store.ErrMisconfigured},
		{"no database", pgtest.ServerError("FATAL", "3D000"), store.ErrMisconfigured},
		{"wrong password", pgtest.ServerError("FATAL", "28P01"), store.ErrMisconfigured},
		{"no such prepared statement", pgtest.ServerError("ERROR", "26000"), store.ErrMisconfigured},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := Fail("claim", fmt.Errorf("wrapped: %w", test.err))
			if !errors.Is(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
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
		CodeNoTable: "run reprisepg.Migrate", CodeNoColumn: "run reprisepg.Migrate", CodeNoFunction: "run reprisepg.Migrate",
		CodeNoSchema: "run reprisepg.Migrate", CodeNoPrivilege: "what reprisepg.Grants returns", CodeDiskFull: "",
	} {
		if got := Advice(pgtest.ServerError("ERROR", code)); want == "" && got != "" || !strings.Contains(got, want) {
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
		{context.DeadlineExceeded, 4, 4, store.ErrBusy, "within 1s (4 are in use; the limit of the pool is 4)"},
		{context.DeadlineExceeded, 3, 4, store.ErrUnavailable, "(3 are in use; the limit"},
		{context.DeadlineExceeded, 3, 0, store.ErrUnavailable, "(3 are in use; the limit of the pool is 0)"},
		{context.Canceled, 4, 4, store.ErrBusy, ""},
		{io.EOF, 4, 4, store.ErrUnavailable, "no connection: EOF"},
		{pgtest.ServerError("FATAL", "53300"), 0, 0, store.ErrUnavailable, ""},
		{pgtest.ServerError("FATAL", "28P01"), 0, 0, store.ErrMisconfigured, ""},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, pgtest.ServerError("FATAL", "57P03")), 4, 4, store.ErrUnavailable, "no connection: "},
		{fmt.Errorf("%w: postgres: another driver", store.ErrMisconfigured), 0, 0, store.ErrMisconfigured, "another driver: claim"},
	} {
		if got := failAcquire("claim", test.err, time.Second, test.used, test.of); !errors.Is(got, test.want) || !strings.Contains(got.Error(), test.says) {
			t.Errorf("%v, want %v and %q", got, test.want, test.says)
		}
	}
}
