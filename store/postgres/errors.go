package reprisepg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// SQLSTATE codes that mean something here.
const (
	codeDivisionByZero  = "22012" // a condition of same.sql or complete_in_tx.sql does not hold
	codeReadOnly        = "25006"
	codeUnsupported     = "0A000"
	codeIdleTimeout     = "25P03"
	codeNoPrivilege     = "42501"
	codeNoTable         = "42P01"
	codeNoColumn        = "42703"
	codeNoFunction      = "42883"
	codeNoSchema        = "3F000"
	codeNoStatement     = "26000"
	codeStatementExists = "42P05"
)

// classes are the sentinels for the codes of errors, or for their first two characters.
// An error with one of the latter does not go away when the call is repeated.
var classes = map[string]error{
	"40001": sqlstore.ErrLostRace, // the server cannot serialize
	"40P01": sqlstore.ErrLostRace, // deadlock
	"55P03": sqlstore.ErrLostRace, // the wait for a lock was too long
	"53100": store.ErrFull,        // disk full
	"XX001": store.ErrCorrupt,     // data corrupted
	"XX002": store.ErrCorrupt,     // index corrupted

	"26": store.ErrMisconfigured, // no such prepared statement
	"28": store.ErrMisconfigured, // authorization
	"3D": store.ErrMisconfigured, // no such database
	"3F": store.ErrMisconfigured, // no such schema
	"42": store.ErrMisconfigured, // syntax or access: a missing table, a missing privilege
}

// classify returns the sentinel for the failure of a statement, or of a commit. If the
// server reports an error at the level ERROR, it undid the statement. If an error ended
// the session, or the reply never arrived, the statement may have been executed.
//
// Only the server's own answer is definite. pgx marks errors from before anything was
// sent (SafeToRetry), but if a connection breaks during a batch or a simple query, it may
// return the error of a later step, whose mark is wrong.
func classify(err error, committing bool) error {
	doubt := store.ErrUnavailable
	if committing {
		doubt = store.ErrUnknown
	}
	var serverErr *pgconn.PgError
	if !errors.As(err, &serverErr) || len(serverErr.Code) != 5 {
		return doubt
	}
	kind := serverErr.Code[:2]
	switch {
	case classes[kind] != nil:
		return classes[kind]
	case !undone(serverErr):
		return doubt
	case classes[serverErr.Code] != nil:
		return classes[serverErr.Code]
	case kind == "XX": // an internal error of the server leaves the record's state open
		return doubt
	}
	return store.ErrUnavailable
}

// advice returns the remedy for a failure, or an empty text if none is known. That of a
// migration may be to use another role.
func advice(op string, err error) string {
	switch noPrivilege := hasCode(err, codeNoPrivilege); {
	case noPrivilege && op == "migrate":
		return "; migrate as the owner of the tables, or with a role that has CREATE on the schema, and on the database if the schema is missing"
	case op == "migrate":
		return ""
	case hasCode(err, codeNoTable, codeNoColumn, codeNoFunction, codeNoSchema):
		return "; the schema is missing or older than this release: run reprisepg.Migrate, or apply what reprisepg.Migrations returns"
	case noPrivilege: // or a policy refused a row, which has the same code
		return "; give the role what reprisepg.Grants returns, and with row-level security a policy that allows it every row"
	}
	return ""
}

// failAcquire wraps the failure to get a connection, before any statement was sent. The
// connections that a *sql.DB is opening count as in use.
func failAcquire(op string, err error, waited time.Duration, used, limit int) error {
	sentinel := classify(err, false)
	switch {
	case errors.Is(err, store.ErrMisconfigured): // of another driver
		return fmt.Errorf("%w: %s", err, op)
	case sqlstore.IsContext(err) && !errors.As(err, new(*pgconn.PgError)):
		return sqlstore.NoConnection(storeName, op, waited, used, limit)
	case !errors.Is(sentinel, store.ErrMisconfigured):
		sentinel = store.ErrUnavailable
	}
	return fmt.Errorf("%w: postgres: %s: no connection: %s", sentinel, op, err.Error())
}

// undone reports whether err says that the server rolled back the statement, and with it
// the transaction. The class 08 is of connections.
func undone(err *pgconn.PgError) bool {
	return cmp.Or(err.SeverityUnlocalized, err.Severity) == "ERROR" && len(err.Code) == 5 && err.Code[:2] != "08"
}

// hasCode reports whether the server answered with one of codes.
func hasCode(err error, codes ...string) bool {
	var serverErr *pgconn.PgError
	return errors.As(err, &serverErr) && slices.Contains(codes, serverErr.Code)
}

// retires reports whether a connection is of no use after err: it is lost, its session
// has ended, or its server is read-only, as a primary is after a failover. A new
// connection may reach the new primary.
func retires(err error) bool {
	var serverErr *pgconn.PgError
	if errors.As(err, &serverErr) {
		return !undone(serverErr) || serverErr.Code == codeReadOnly
	}
	return !sqlstore.IsContext(err) && !errors.Is(err, sqlstore.ErrLostRace) && !sqlstore.IsResult(err)
}
