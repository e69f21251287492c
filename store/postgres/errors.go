package reprisepg

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
)

// SQLSTATE codes and classes (their first two characters) that mean something here.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeDiskFull      = "53100"
	codeTaken         = "RP001" // of this package: another attempt has the record
	codeNoTx          = "25P01"
	codeIdleTimeout   = "25P03"
	codeNoSavepoint   = "3B001"

	classConnection = "08"
	classCorrupt    = "XX"
)

// misconfigured are the classes of what no repetition mends: no such prepared statement, authorization, no such database, no such
// schema, and syntax or access (a missing table, a missing privilege).
var misconfigured = []string{"26", "28", "3D", "3F", "42"}

// fail wraps the failure of a statement in the sentinel of its class. The text of err is kept and err itself is not:
// its detail can quote a row.
func fail(op string, err error) error {
	return fmt.Errorf("%w: %s: %s", class(err), op, err.Error())
}

// failAcquire is fail for a connection that was not to be had, so that nothing was executed.
func failAcquire(op string, err error) error {
	sentinel := reprise.ErrUnavailable
	if errors.Is(class(err), reprise.ErrMisconfigured) {
		sentinel = reprise.ErrMisconfigured
	}
	return fmt.Errorf("%w: %s: no connection: %s", sentinel, op, err.Error())
}

// class places the failure of a statement. What the server reports at the level ERROR undid the statement; what ended the
// session, or never arrived, leaves open whether it was executed.
//
// Only the server's own word is definite. pgx can tell that an error came before anything was sent (SafeToRetry), but when a
// connection breaks under a batch or a simple query it may report the error of a later step, which then says so wrongly.
func class(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case !errors.As(err, &pgErr):
		return reprise.ErrUnknown
	case len(pgErr.Code) != 5:
		return reprise.ErrUnknown
	case slices.Contains(misconfigured, pgErr.Code[:2]):
		return reprise.ErrMisconfigured
	case !undone(pgErr):
		return reprise.ErrUnknown
	case pgErr.Code == codeDiskFull:
		return reprise.ErrFull
	case pgErr.Code[:2] == classCorrupt:
		return reprise.ErrCorrupt
	}
	return reprise.ErrUnavailable
}

// undone reports that the server itself says that it rolled the statement, and with it the transaction, back.
func undone(err *pgconn.PgError) bool {
	severity := err.SeverityUnlocalized
	if severity == "" {
		severity = err.Severity
	}
	return severity == "ERROR" && len(err.Code) == 5 && err.Code[:2] != classConnection
}

// hasCode reports whether the server answered with one of codes.
func hasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains(codes, pgErr.Code)
}
