package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
)

// SQLSTATE codes and classes (their first two characters) that mean something here.
const (
	CodeSerialization   = "40001"
	CodeDeadlock        = "40P01"
	CodeDiskFull        = "53100"
	CodeLockTimeout     = "55P03"
	CodeDivisionByZero  = "22012" // a condition of same.sql or complete.sql does not hold
	CodeReadOnly        = "25006"
	CodeUnsupported     = "0A000"
	CodeIdleTimeout     = "25P03"
	CodeNoPrivilege     = "42501"
	CodeNoTable         = "42P01"
	CodeNoColumn        = "42703"
	CodeNoFunction      = "42883"
	CodeNoSchema        = "3F000"
	CodeNoStatement     = "26000"
	codeStatementExists = "42P05"

	codeDataCorrupted  = "XX001"
	codeIndexCorrupted = "XX002"

	classConnection = "08"
)

// misconfigured are the classes of errors that do not go away when the call is repeated:
// no such prepared statement, authorization, no such database, no such schema, and syntax
// or access (a missing table, a missing privilege).
var misconfigured = []string{"26", "28", "3D", "3F", "42"}

// Fail wraps the failure of a statement in the sentinel of its class. It keeps the text
// of err but not err itself, because its detail can quote a row.
func Fail(op string, err error) error {
	return fmt.Errorf("%w: postgres: %s: %s%s", Class(err), op, err.Error(), Advice(err))
}

// Advice returns the remedy for a failure, or an empty text if none is known.
func Advice(err error) string {
	switch {
	case HasCode(err, CodeNoTable, CodeNoColumn, CodeNoFunction, CodeNoSchema):
		return "; the schema is missing or older than this release: run reprisepg.Migrate, or apply what reprisepg.Migrations returns"
	case refusedByPolicy(err):
		return "; the role needs a policy of row-level security that allows it every row"
	case HasCode(err, CodeNoPrivilege):
		return "; give the role what reprisepg.Grants returns"
	}
	return ""
}

// refusedByPolicy reports whether row-level security refused a row. The error has the
// code of a missing grant, but also names the function of the server that reported it, in
// every language.
func refusedByPolicy(err error) bool {
	var serverErr *pgconn.PgError
	return HasCode(err, CodeNoPrivilege) && errors.As(err, &serverErr) && serverErr.Routine == "ExecWithCheckOptions"
}

// failAcquire wraps the failure to get a connection, before any statement was sent. If
// the deadline of the call passed while every connection was in use, the error is
// ErrBusy; otherwise a new connection took too long. The connections that a *sql.DB is
// opening count as in use.
func failAcquire(op string, err error, waited time.Duration, used, limit int) error {
	if errors.Is(err, store.ErrMisconfigured) {
		return fmt.Errorf("%w: %s", err, op)
	}
	sentinel := store.ErrUnavailable
	if errors.Is(Class(err), store.ErrMisconfigured) {
		sentinel = store.ErrMisconfigured
	}
	var serverErr *pgconn.PgError
	if limit > 0 && used >= limit && contextEnded(err) && !errors.As(err, &serverErr) {
		sentinel = store.ErrBusy
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &serverErr) {
		return fmt.Errorf("%w: postgres: %s: no connection available within %v (%d are in use; the limit of the pool is %d)",
			sentinel, op, waited.Round(time.Millisecond), used, limit)
	}
	return fmt.Errorf("%w: postgres: %s: no connection: %s", sentinel, op, err.Error())
}

func contextEnded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Class returns the sentinel for the failure of a statement. If the server reports an
// error at the level ERROR, it undid the statement. If an error ended the session, or the
// reply never arrived, the statement may have been executed.
//
// Only the server's own answer is definite. pgx marks errors from before anything was
// sent (SafeToRetry), but if a connection breaks during a batch or a simple query, it may
// return the error of a later step, whose mark is wrong.
func Class(err error) error {
	var serverErr *pgconn.PgError
	switch {
	case !errors.As(err, &serverErr):
		return store.ErrUnknown
	case len(serverErr.Code) != 5:
		return store.ErrUnknown
	case slices.Contains(misconfigured, serverErr.Code[:2]):
		return store.ErrMisconfigured
	case !Undone(serverErr):
		return store.ErrUnknown
	case serverErr.Code == CodeDiskFull:
		return store.ErrFull
	case serverErr.Code == codeDataCorrupted || serverErr.Code == codeIndexCorrupted:
		return store.ErrCorrupt
	case serverErr.Code[:2] == "XX": // an internal error of the server leaves the record's state open
		return store.ErrUnknown
	}
	return store.ErrUnavailable
}

// Undone reports whether err says that the server rolled back the statement, and with it
// the transaction.
func Undone(err *pgconn.PgError) bool {
	severity := err.SeverityUnlocalized
	if severity == "" {
		severity = err.Severity
	}
	return severity == "ERROR" && len(err.Code) == 5 && err.Code[:2] != classConnection
}

// HasCode reports whether the server answered with one of codes.
func HasCode(err error, codes ...string) bool {
	var serverErr *pgconn.PgError
	return errors.As(err, &serverErr) && slices.Contains(codes, serverErr.Code)
}
