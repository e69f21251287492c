package reprisemysql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// dialect is that of MariaDB and MySQL.
//
// The clock is the start of the statement, which is before its snapshot: see the field
// Clock. UTC_TIMESTAMP does not depend on time zones and daylight saving, as SYSDATE
// does; but a session can freeze it (SET timestamp), which SYSDATE reveals. NOW and
// SYSDATE are in one time zone, so their difference is the age of the statement.
var dialect = sqlstore.Dialect{
	Name:        "mysql",
	Clock:       started,
	Timely:      "ABS(TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6))) < 60",
	Late:        started + " + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))",
	Guard:       guard,
	Stale:       readOnly,
	Hold:        " FOR UPDATE",
	Wait:        " LOCK IN SHARE MODE",
	Free:        " FOR UPDATE SKIP LOCKED",
	Isolate:     isolate,
	Begin:       begin,
	Back:        "SET SESSION autocommit = @reprise_autocommit, SESSION wait_timeout = @reprise_wait /*M!, SESSION max_statement_time = @reprise_statement */",
	Undoes:      undoes,
	NoSavepoint: is(1305),
	Tables: "SELECT IF(table_schema = DATABASE(), table_name, CONCAT(table_schema, '.', table_name)), " +
		"CONCAT('`', REPLACE(table_schema, '`', '``'), '`.`', REPLACE(table_name, '`', '``'), '`') FROM information_schema.columns " +
		"WHERE column_name IN " + sqlstore.TableColumns + " GROUP BY table_schema, table_name HAVING COUNT(*) = " + sqlstore.TableColumnsCount + " ORDER BY 1 LIMIT 10",
	Quote:      func(name string) string { return "`" + name + "`" },
	Steps:      steps,
	Versions:   "CREATE TABLE IF NOT EXISTS {migrations} (version INT NOT NULL PRIMARY KEY, applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB",
	Alone:      alone,
	Missing:    is(1146),
	Done:       is(1060, 1061, 1091), // the column or index exists, or is gone
	DeleteDue:  anyWhere + "DELETE /*+ SET_VAR(sql_safe_updates = 0) */ r FROM " + dueRows + " STRAIGHT_JOIN {records} AS r ON r.id = due.id",
	UpdateDue:  anyWhere + "UPDATE /*+ SET_VAR(sql_safe_updates = 0) */ " + dueRows + " STRAIGHT_JOIN {records} AS r ON r.id = due.id SET {set}",
	DueBytes:   dueBytes,
	Hasty:      "/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ ",
	Told:       "LAST_INSERT_ID",
	Taken:      is(1062, 1205, 1048), // 1048: the fence is NULL, and the look says why
	Settings:   settings,
	Judge:      judge,
	JudgeTable: judgeTable,
	Classify:   classify,
	Retires:    retires,
	ReadOnly:   refused,
	Lost:       lost,
	Fits:       fits,
}

// guard is the condition of sessions whose statements commit at once, and see only what
// is committed. The names of variables are those of MariaDB, which executes /*M! */ only,
// and of MySQL, which executes /*!80000 */ and has no variable in_transaction.
const guard = "@@autocommit /*M! AND NOT @@in_transaction AND @@tx_isolation <> 'READ-UNCOMMITTED' */ /*!80000 AND @@transaction_isolation <> 'READ-UNCOMMITTED' */"

// isolate makes the next transaction of the session one that sees what is committed, and
// fails in a transaction.
const isolate = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

// begin returns the statements that begin the transaction of a handler, which lasts as
// long as timeout at most. Limits are set before any lock: for the silence between two
// statements, and for one statement, which MySQL cannot limit.
//
// The session has autocommit off until the end. A deadlock, or a statement that commits
// implicitly, ends the transaction, and with autocommit on, the handler's next statement
// would commit at once; now it begins a transaction that is never committed.
func begin(timeout time.Duration) []string {
	seconds := int64((timeout+time.Second-1)/time.Second) + 1
	return []string{
		fmt.Sprintf("SET @reprise_autocommit = @@autocommit, @reprise_wait = @@wait_timeout /*M!, @reprise_statement = @@max_statement_time */, "+
			"SESSION autocommit = 0, SESSION wait_timeout = LEAST(@@wait_timeout, %d) "+
			"/*M!, SESSION max_statement_time = IF(@@max_statement_time = 0, %[1]d, LEAST(@@max_statement_time, %[1]d)) */", seconds),
		isolate,
	}
}

// started is when the statement started, in microseconds since 1970.
const started = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// readOnly is the condition that is true on a replica, and on a former primary after a
// failover; those of Aurora have the second variable alone. In some versions a variable
// is a text.
const readOnly = "(CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR CAST(@@innodb_read_only AS CHAR) NOT IN ('0', 'OFF'))"

// anyWhere turns sql_safe_updates off for a statement of MariaDB, which refuses one whose
// rows a subquery selects. MySQL has a hint for it.
const anyWhere = "/*M! SET STATEMENT sql_safe_updates = 0 FOR */ "

// dueRows selects the rows of a purge. It skips rows that another transaction has locked,
// which the next purge deletes. They are joined in this order, because the planner reads
// all of a small table first, and waits for the locked rows.
const dueRows = "(SELECT id FROM {records} WHERE {which} ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED) AS due"

// dueBytes bounds the payloads of a purge's statement: a transaction of Group Replication
// has 150 MB at most (group_replication_transaction_size_limit), with the deleted rows,
// and each replica executes it as a whole.
const dueBytes = 16 << 20

// classes are the classes of the server's errors after which a statement was not
// executed, or was undone.
var classes = map[int64]error{
	1205: sqlstore.ErrLostRace, // lock wait timeout, and in MariaDB NOWAIT
	1213: sqlstore.ErrLostRace, // deadlock
	1020: sqlstore.ErrLostRace, // the row changed since the snapshot (innodb_snapshot_isolation)
	1062: sqlstore.ErrLostRace, // duplicate key
	3572: sqlstore.ErrLostRace, // NOWAIT in MySQL

	1021: store.ErrFull, // disk full
	1114: store.ErrFull, // table full
	1153: store.ErrFull, // larger than max_allowed_packet
	1118: store.ErrFull, // row size too large: the redo log is too small for it

	1040: store.ErrUnavailable, // too many connections
	1041: store.ErrUnavailable, // out of resources
	1203: store.ErrUnavailable, // too many connections of the user
	1226: store.ErrUnavailable, // the user exceeded a resource
	1290: store.ErrUnavailable, // the server is read-only
	1792: store.ErrUnavailable, // the transaction is read-only
	1836: store.ErrUnavailable, // the server is in read-only mode

	1044: store.ErrMisconfigured, // access denied
	1045: store.ErrMisconfigured,
	1046: store.ErrMisconfigured, // no database selected
	1049: store.ErrMisconfigured, // unknown database
	1054: store.ErrMisconfigured, // unknown column
	1064: store.ErrMisconfigured, // syntax: an older server
	1142: store.ErrMisconfigured, // command denied
	1143: store.ErrMisconfigured,
	1146: store.ErrMisconfigured, // no such table
	1227: store.ErrMisconfigured,
	1364: store.ErrMisconfigured, // a column that this release does not know
	1370: store.ErrMisconfigured,
	1568: store.ErrMisconfigured, // the session came out of the pool with a transaction

	1034: store.ErrCorrupt, // incorrect key file
	1194: store.ErrCorrupt, // the table is marked as crashed
	1712: store.ErrCorrupt, // an index is corrupt
}

// numberOf finds the number of an error of the server in the error of the driver.
func numberOf(err error) (number int64, ok bool) { return sqlstore.Code(err, "Number") }

// classify returns the sentinel for an error of the driver. A commit with an error that
// is not among classes may have been executed.
func classify(err error, committing bool) error {
	number, ok := numberOf(err)
	switch class := classes[number]; {
	case ok && class != nil:
		return class
	case strings.Contains(err.Error(), "max_allowed_packet"): // for a parameter that is sent in pieces
		return store.ErrFull
	case committing:
		return store.ErrUnknown
	default:
		return store.ErrUnavailable
	}
}

// retires reports whether the server closed a connection or became read-only, as a
// primary does in a failover: a new connection may reach the new primary.
func retires(err error) bool {
	_, ok := numberOf(err)
	return refused(err) || !ok && err.Error() == "invalid connection"
}

// is returns a function that reports whether the server answered with one of numbers.
func is(numbers ...int64) func(error) bool {
	return func(err error) bool {
		number, ok := numberOf(err)
		return ok && slices.Contains(numbers, number)
	}
}

const askTimeout = 2 * time.Second

// undoes reports whether the server rolled the transaction back: always after a change
// since the snapshot, a lock table that is full, and a deadlock, and as it is set
// (innodb_rollback_on_timeout) after a lock wait timeout. MariaDB then says whether it
// did; one that does not answer within askTimeout rolls back with its connection, which
// the driver closes.
func undoes(on *sqltx.Session, err error) (undone bool) {
	if !is(1205)(err) {
		return is(1020, 1206, 1213)(err)
	}
	const rolledBack = "SELECT 1 FROM DUAL WHERE /*M! NOT @@in_transaction */ /*!80000 @@innodb_rollback_on_timeout */"
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	failed := on.Query(ctx, rolledBack, func([]driver.Value) error {
		undone = true
		return nil
	})
	return undone || failed != nil
}

// refused reports whether the server refused a write because it is read-only.
var refused = is(1290, 1792, 1836)

// lost reports whether the server lost a prepared statement, as it does when a session is
// reset or a proxy moves it, or could not prepare it anew after a change of the schema.
var lost = is(1243, 1615)

// A server that gets a packet beyond its limit closes the connection, and its error is
// lost. So large payloads are measured first, including the escapes that their bytes may
// need.
const (
	largePayload = 256 << 10
	restOfPacket = 4 << 10
	escaped      = "\x00\n\r\x1a'\"\\"
)

func fits(ctx context.Context, on sqlstore.Conn, payload []byte) error {
	if len(payload) < largePayload {
		return nil
	}
	var limit int64
	err := on.Query(ctx, "SELECT @@max_allowed_packet", func(r sqlstore.Row) error { return r.Scan(&limit) })
	if err != nil {
		return err
	}
	size := int64(len(payload) + restOfPacket)
	for _, b := range payload {
		if strings.IndexByte(escaped, b) >= 0 {
			size++
		}
	}
	if size > limit {
		return fmt.Errorf("%w: mysql: complete: the response takes up to %d bytes, and max_allowed_packet is %d; raise it", store.ErrFull, size, limit)
	}
	return nil
}
