package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Statement is a text that is prepared once in each session, with parameters and columns
// in the binary format. Its parameters have casts.
type Statement struct{ SQL, name string }

// NewStatement names a statement after its text, so that two statements never have one
// name in a session that a pooler lends to several clients.
func NewStatement(sql string) *Statement {
	sum := sha256.Sum256([]byte(sql))
	return &Statement{SQL: sql, name: "reprise_" + hex.EncodeToString(sum[:12])}
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

// Sender sends the statements of every request.
type Sender struct {
	Logger     *slog.Logger
	Unprepared atomic.Bool // sessions do not keep prepared statements, because a pooler shares them
}

// On reports whether to send statements on a connection prepared, and not parsed anew in
// the same round trip: if the pool prepares its own, until a pooler turns out to lend
// sessions in which they are missing.
func (s *Sender) On(conn *pgx.Conn) (prepared bool) {
	return stateOf(conn).prepares && !s.Unprepared.Load()
}

// NotPrepared reports whether a session lacks the statements that were prepared on its
// connection, or already has those to be prepared: a pooler lends it to several
// connections. No statement was executed.
func NotPrepared(err error) bool {
	return HasCode(err, CodeNoStatement, codeStatementExists)
}

// lossesApart is how close two losses of a session must be to suspect a pooler: behind
// one that shares sessions, a busy connection soon gets another session.
const lossesApart = time.Minute

// Lost notes that err says that the session of conn lacks the statements that were
// prepared on its connection. The first time, the session prepares them again, because
// the application may have executed DISCARD ALL. If it loses them again within
// lossesApart, or has those of another connection, a pooler shares it, and the sender
// gives up: after at most n + 1 losses with n connections.
func (s *Sender) Lost(ctx context.Context, conn *pgx.Conn, err error) {
	state, now := stateOf(conn), time.Now()
	if HasCode(err, codeStatementExists) || !state.lost.IsZero() && now.Sub(state.lost) < lossesApart {
		s.GiveUp(ctx, err)
		return
	}
	state.lost = now
	clear(state.prepared)
}

// GiveUp makes the store send statements unprepared from now on.
func (s *Sender) GiveUp(ctx context.Context, err error) {
	if s.Unprepared.Swap(true) {
		return
	}
	s.Logger.LogAttrs(ctx, slog.LevelWarn,
		"reprisepg: a pooler shares sessions without keeping prepared statements; continuing without them, which costs more. "+
			"Set the pool's default_query_exec_mode to exec, or max_prepared_statements of PgBouncer 1.21 or newer",
		slog.String("error", err.Error()))
}

// Prepare returns the description of st in the session of conn.
func Prepare(ctx context.Context, conn *pgx.Conn, st *Statement) (*pgconn.StatementDescription, error) {
	state := stateOf(conn)
	if description := state.prepared[st.name]; description != nil {
		return description, nil
	}
	if !state.lost.IsZero() { // the session may still have this one
		if err := conn.PgConn().Deallocate(ctx, st.name); err != nil {
			return nil, err
		}
	}
	description, err := conn.PgConn().Prepare(ctx, st.name, st.SQL, nil)
	if err != nil {
		return nil, err
	}
	state.prepared[st.name] = description
	return description, nil
}

// Call is a statement with its parameters, and the reader of its rows; nil reads none. A
// row and its columns are valid only during the call.
type Call struct {
	Statement *Statement
	Args      []any
	Read      func(*Row)
}

// Call returns a call of st.
func (st *Statement) Call(read func(*Row), args ...any) Call {
	return Call{Statement: st, Args: args, Read: read}
}

// Sent says how many calls succeeded, and has the tag of the last of them.
type Sent struct {
	Done int
	Tag  pgconn.CommandTag
}

// Send sends the calls in one round trip and one transaction. It reads the answers to the
// end, because only then has the server committed.
func Send(ctx context.Context, conn *pgx.Conn, prepared bool, calls ...Call) (sent Sent, err error) {
	if tracer := stateOf(conn).tracer; tracer != nil {
		texts := make([]string, len(calls))
		for i := range calls {
			texts[i] = calls[i].Statement.SQL
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
		values, err := parameters(stateOf(conn).types, c.Args)
		if err != nil {
			return sent, err
		}
		if !prepared {
			batch.ExecParams(c.Statement.SQL, values, nil, binaryFormat, binaryFormat)
			continue
		}
		description, err := Prepare(ctx, conn, c.Statement)
		if err != nil {
			return sent, err
		}
		batch.ExecStatement(description, values, binaryFormat, binaryFormat)
	}
	results := conn.PgConn().ExecBatch(ctx, &batch)
	for i := 0; results.NextResult(); i++ {
		readErr := sent.read(results.ResultReader(), calls[i].Read)
		if err == nil {
			err = readErr
		}
	}
	if closeErr := results.Close(); closeErr != nil {
		return sent, closeErr
	}
	return sent, err
}

// Query executes a statement in one round trip that leaves no state in the session, and
// hands each row of its answer to read. The values of rows are binary, so that no setting
// of the session, such as bytea_output, changes them.
func Query(ctx context.Context, conn *pgx.Conn, sql string, args []any, read func(pgx.Rows) error) (tag pgconn.CommandTag, err error) {
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
func (s *Sent) sendOne(ctx context.Context, conn *pgx.Conn, prepared bool, c *Call) error {
	values, err := parameters(stateOf(conn).types, c.Args)
	if err != nil {
		return err
	}
	if !prepared {
		return s.read(conn.PgConn().ExecParams(ctx, c.Statement.SQL, values, nil, binaryFormat, binaryFormat), c.Read)
	}
	description, err := Prepare(ctx, conn, c.Statement)
	if err != nil {
		return err
	}
	return s.read(conn.PgConn().ExecStatement(ctx, description, values, binaryFormat, binaryFormat), c.Read)
}

// read hands every row of an answer to read, and counts the call if it succeeded.
func (s *Sent) read(results *pgconn.ResultReader, read func(*Row)) error {
	var failed error
	for results.NextRow() {
		if read == nil {
			continue
		}
		r := Row{Columns: results.Values()}
		read(&r)
		if r.Err != nil {
			failed = r.Err
		}
	}
	tag, err := results.Close()
	if err != nil {
		return err
	}
	s.Done++
	s.Tag = tag
	return failed
}
