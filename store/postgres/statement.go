package reprisepg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// statement is a text that is prepared once in each session, with parameters and columns
// in the binary format. Its parameters have casts.
type statement struct{ sql, name string }

// newStatement names a statement after its text, so that two statements never have one
// name in a session that a pooler lends to several clients.
func newStatement(sql string) *statement {
	sum := sha256.Sum256([]byte(sql))
	return &statement{sql: sql, name: "reprise_" + hex.EncodeToString(sum[:12])}
}

// sessionState is the store's state of a connection, in its CustomData.
type sessionState struct {
	prepares bool            // the pool prepares its own statements
	tracer   pgx.QueryTracer // of the application, or nil
	types    *pgtype.Map     // not that of the application, which may change it
	prepared map[string]*pgconn.StatementDescription
	lost     time.Time // when the session last turned out to lack one of them; zero: never
}

const noteState = "reprise.session"

// stateOf returns the state of conn.
func stateOf(conn *pgx.Conn) *sessionState {
	notes := conn.PgConn().CustomData()
	if state, ok := notes[noteState].(*sessionState); ok {
		return state
	}
	config := conn.Config()
	state := &sessionState{
		prepares: config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement, tracer: config.Tracer,
		types: pgtype.NewMap(), prepared: make(map[string]*pgconn.StatementDescription),
	}
	notes[noteState] = state
	return state
}

// prepares reports whether to send statements on a connection prepared, and not parsed
// anew in the same round trip: if the pool prepares its own, until a pooler turns out to
// lend sessions in which they are missing.
func (t *table) prepares(conn *pgx.Conn) bool { return stateOf(conn).prepares && !t.unprepared.Load() }

// notPrepared reports whether a session lacks the statements that were prepared on its
// connection, or already has those to be prepared: a pooler lends it to several
// connections. No statement was executed.
func notPrepared(err error) bool { return hasCode(err, codeNoStatement, codeStatementExists) }

// lossesApart is how close two losses of a session must be to suspect a pooler: behind
// one that shares sessions, a busy connection soon gets another session.
const lossesApart = time.Minute

// lost notes that err says that the session of conn lacks the statements that were
// prepared on its connection. The first time, the session prepares them again, because
// the application may have executed DISCARD ALL. If it loses them again within
// lossesApart, or has those of another connection, a pooler shares it, and the store
// gives up: after at most n + 1 losses with n connections.
func (t *table) lost(ctx context.Context, conn *pgx.Conn, err error) {
	state, now := stateOf(conn), time.Now()
	if hasCode(err, codeStatementExists) || !state.lost.IsZero() && now.Sub(state.lost) < lossesApart {
		t.stopPreparing(ctx, err)
		return
	}
	state.lost = now
	clear(state.prepared)
}

// stopPreparing makes the store send statements unprepared from now on.
func (t *table) stopPreparing(ctx context.Context, err error) {
	if t.unprepared.Swap(true) {
		return
	}
	t.Options.Logger.LogAttrs(ctx, slog.LevelWarn,
		"reprisepg: a pooler shares sessions without keeping prepared statements; continuing without them, which costs more. "+
			"Set the pool's default_query_exec_mode to exec, or max_prepared_statements of PgBouncer 1.21 or newer",
		slog.String("error", err.Error()))
}

// prepare returns the description of st in the session of conn.
func prepare(ctx context.Context, conn *pgx.Conn, st *statement) (*pgconn.StatementDescription, error) {
	state := stateOf(conn)
	if description := state.prepared[st.name]; description != nil {
		return description, nil
	}
	if !state.lost.IsZero() { // the session may still have this one
		if err := conn.PgConn().Deallocate(ctx, st.name); err != nil {
			return nil, err
		}
	}
	description, err := conn.PgConn().Prepare(ctx, st.name, st.sql, nil)
	if err != nil {
		return nil, err
	}
	state.prepared[st.name] = description
	return description, nil
}

// statementCall is a statement with its parameters, and the reader of its rows; nil reads
// none. A row and its columns are valid only during the call.
type statementCall struct {
	statement *statement
	args      []any
	read      func(*binaryRow)
}

// call returns a call of st.
func (st *statement) call(read func(*binaryRow), args ...any) statementCall {
	return statementCall{statement: st, args: args, read: read}
}

// sentCalls says how many calls succeeded, and has the tag of the last of them.
type sentCalls struct {
	done int
	tag  pgconn.CommandTag
}

// send sends the calls in one round trip and one transaction. It reads the answers to the
// end, because only then has the server committed.
func send(ctx context.Context, conn *pgx.Conn, prepared bool, calls ...statementCall) (sent sentCalls, err error) {
	if tracer := stateOf(conn).tracer; tracer != nil {
		texts := make([]string, len(calls))
		for i := range calls {
			texts[i] = calls[i].statement.sql
		}
		defer trace(ctx, conn, tracer, texts, &err)()
	}
	if len(calls) == 1 {
		err = sent.sendOne(ctx, conn, prepared, &calls[0])
		return sent, err
	}
	var batch pgconn.Batch
	for i := range calls {
		c := &calls[i]
		values, err := parameters(stateOf(conn).types, c.args)
		if err != nil {
			return sent, err
		}
		if !prepared {
			batch.ExecParams(c.statement.sql, values, nil, binaryFormat, binaryFormat)
			continue
		}
		description, err := prepare(ctx, conn, c.statement)
		if err != nil {
			return sent, err
		}
		batch.ExecStatement(description, values, binaryFormat, binaryFormat)
	}
	results := conn.PgConn().ExecBatch(ctx, &batch)
	for i := 0; results.NextResult(); i++ {
		readErr := sent.read(results.ResultReader(), calls[i].read)
		if err == nil {
			err = readErr
		}
	}
	if closeErr := results.Close(); closeErr != nil {
		return sent, closeErr
	}
	return sent, err
}

// queryOn executes a statement in one round trip that leaves no state in the session, and
// hands each row of its answer to read. The values of rows are binary, so that no setting
// of the session, such as bytea_output, changes them.
func queryOn(ctx context.Context, conn *pgx.Conn, sql string, args []any, read func(pgx.Rows) error) (tag pgconn.CommandTag, err error) {
	if tracer := stateOf(conn).tracer; tracer != nil {
		defer trace(ctx, conn, tracer, []string{sql}, &err)()
	}
	var b pgx.ExtendedQueryBuilder
	if err := b.Build(stateOf(conn).types, nil, args); err != nil {
		return tag, err
	}
	rows := pgx.RowsFromResultReader(stateOf(conn).types, conn.PgConn().ExecParams(ctx, sql, b.ParamValues, nil, b.ParamFormats, binaryFormat))
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return tag, err
		}
	}
	rows.Close() // only then has the server committed
	return rows.CommandTag(), rows.Err()
}

// trace reports the start of statements to a tracer of the application, and returns a
// function that reports their end.
func trace(ctx context.Context, conn *pgx.Conn, tracer pgx.QueryTracer, statements []string, err *error) func() {
	traced := make([]context.Context, len(statements))
	for i, text := range statements {
		traced[i] = tracer.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: text}) //nolint:fatcontext // one of each statement, not one in another
	}
	return func() { //nolint:contextcheck // in the contexts that the tracer returned
		for _, ctx := range traced {
			tracer.TraceQueryEnd(ctx, conn, pgx.TraceQueryEndData{Err: *err})
		}
	}
}

// sendOne sends one call.
func (s *sentCalls) sendOne(ctx context.Context, conn *pgx.Conn, prepared bool, c *statementCall) error {
	values, err := parameters(stateOf(conn).types, c.args)
	if err != nil {
		return err
	}
	if !prepared {
		return s.read(conn.PgConn().ExecParams(ctx, c.statement.sql, values, nil, binaryFormat, binaryFormat), c.read)
	}
	description, err := prepare(ctx, conn, c.statement)
	if err != nil {
		return err
	}
	return s.read(conn.PgConn().ExecStatement(ctx, description, values, binaryFormat, binaryFormat), c.read)
}

// read hands every row of an answer to read, and counts the call if it succeeded.
func (s *sentCalls) read(results *pgconn.ResultReader, read func(*binaryRow)) error {
	var failed error
	for results.NextRow() {
		if read == nil {
			continue
		}
		r := binaryRow{columns: results.Values()}
		read(&r)
		if r.err != nil {
			failed = r.err
		}
	}
	tag, err := results.Close()
	if err != nil {
		return err
	}
	s.done++
	s.tag = tag
	return failed
}
