package reprisepg

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// sessionState is the store's state of a connection, in its CustomData.
type sessionState struct {
	prepares bool                                    // the pool prepares its own statements
	tracer   pgx.QueryTracer                         // of the application, or nil
	types    *pgtype.Map                             // not that of the application, which may change it
	prepared map[string]*pgconn.StatementDescription // by their texts
	lost     time.Time                               // when the session last turned out to lack one of them; zero: never
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

// prepare returns the description of a statement in the session of conn. It is named
// after its text, so that two statements never have one name in a session that a pooler
// lends to several clients.
func prepare(ctx context.Context, conn *pgx.Conn, text string) (*pgconn.StatementDescription, error) {
	state := stateOf(conn)
	if description := state.prepared[text]; description != nil {
		return description, nil
	}
	sum := sha256.Sum256([]byte(text))
	name := "reprise_" + hex.EncodeToString(sum[:12])
	if !state.lost.IsZero() { // the session may still have this one
		if err := conn.PgConn().Deallocate(ctx, name); err != nil {
			return nil, err
		}
	}
	description, err := conn.PgConn().Prepare(ctx, name, text, nil)
	if err != nil {
		return nil, err
	}
	state.prepared[text] = description
	return description, nil
}

// statementCall is a statement with its parameters, and the reader of its rows; nil reads
// none. A row is valid only during the call.
type statementCall struct {
	text string
	args []any
	read func(sqlstore.Row) error
}

// send sends the calls in one round trip and one transaction. It returns how many of them
// succeeded, and the tag of the last of these. It reads the answers to the end, because
// only then has the server committed. It leaves no state in the session, but for prepared
// statements, whose parameters have casts.
func send(ctx context.Context, conn *pgx.Conn, prepared bool, calls ...statementCall) (done int, tag pgconn.CommandTag, err error) {
	state := stateOf(conn)
	if state.tracer != nil {
		defer trace(ctx, conn, state.tracer, calls, &err)()
	}
	var batch pgconn.Batch
	rows := make([]binaryRow, len(calls))
	for i, c := range calls {
		oids, values, err := parameters(state.types, c.args)
		if err != nil {
			return 0, tag, err
		}
		if !prepared {
			batch.ExecParams(c.text, values, oids, binaryFormat, binaryFormat)
			continue
		}
		description, err := prepare(ctx, conn, c.text)
		if err != nil {
			return 0, tag, err
		}
		rows[i].fields = description.Fields
		batch.ExecStatement(description, values, binaryFormat, binaryFormat)
	}
	results := conn.PgConn().ExecBatch(ctx, &batch)
	for i := 0; results.NextResult(); i++ {
		answer, row, read := results.ResultReader(), &rows[i], calls[i].read
		row.types = state.types
		if !prepared {
			row.fields = answer.FieldDescriptions()
		}
		for answer.NextRow() {
			if row.columns = answer.Values(); read != nil && err == nil {
				err = read(row)
			}
		}
		last, failed := answer.Close()
		if err = cmp.Or(err, failed); failed == nil {
			done, tag = done+1, last
		}
	}
	return done, tag, cmp.Or(results.Close(), err)
}

// trace reports the start of calls to a tracer of the application, and returns a function
// that reports their end.
func trace(ctx context.Context, conn *pgx.Conn, tracer pgx.QueryTracer, calls []statementCall, err *error) func() {
	traced := make([]context.Context, len(calls))
	for i := range calls {
		traced[i] = tracer.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: calls[i].text}) //nolint:fatcontext // one of each statement, not one in another
	}
	return func() { //nolint:contextcheck // in the contexts that the tracer returned
		for _, ctx := range traced {
			tracer.TraceQueryEnd(ctx, conn, pgx.TraceQueryEndData{Err: *err})
		}
	}
}
