package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// The libraries that the program does not use, on the transaction of the attempt.

type insert func(context.Context, *sql.Tx, order) error

var mapper = reflectx.NewMapperFunc("db", strings.ToLower)

func withSqlx(ctx context.Context, own *sql.Tx, o order) error {
	tx := &sqlx.Tx{Tx: own, Mapper: mapper}
	var id int64
	return tx.GetContext(ctx, &id, record, o.From, o.To, o.Amount, o.Note)
}

func withBun(pool *sql.DB) insert {
	type row struct {
		bun.BaseModel `bun:"table:reprise_example.transfers"`

		Source, Target string
		Amount         int64
		Note           string
	}
	db := bun.NewDB(pool, pgdialect.New()) // once for the process
	return func(ctx context.Context, tx *sql.Tx, o order) error {
		_, err := db.NewInsert().Conn(tx).Model(&row{Source: o.From, Target: o.To, Amount: o.Amount, Note: o.Note}).Exec(ctx)
		return err
	}
}

// inTx is a driver for db.NewClient(db.Driver(…)) of the code that ent generates. The
// store ends its transaction: those that ent begins and commits are part of that one.
type inTx struct{ *entsql.Driver }

// Tx implements [dialect.Driver].
func (d inTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

func withEnt(ctx context.Context, own *sql.Tx, o order) error {
	driver := inTx{entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: own})}
	tx, err := driver.Tx(ctx)
	if err != nil {
		return err
	}
	query, args := entsql.Dialect(dialect.Postgres).Insert("transfers").Schema("reprise_example").
		Columns("source", "target", "amount", "note").Values(o.From, o.To, o.Amount, o.Note).Query()
	if err := tx.Exec(ctx, query, args, nil); err != nil {
		return err
	}
	return tx.Commit()
}

// fixture is a bank whose handlers are functions.
type fixture struct {
	engine *reprise.Engine
	pool   *sql.DB
}

func setup(t *testing.T) *fixture {
	t.Helper()
	pool, err := sql.Open("pgx", servers.StartPostgres(t, "fsync=on").URL())
	servers.Must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	st, err := openStore(t.Context(), pool)
	servers.Must(t, err)
	engine, err := reprise.New(st, reprise.Config{})
	servers.Must(t, err)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	return &fixture{engine, pool}
}

// do runs an attempt of a key.
func (f *fixture) do(t *testing.T, key string, handler func(ctx context.Context) error) (replayed bool, err error) {
	t.Helper()
	op := reprise.Operation{Scope: "tests", Key: key, Fingerprint: store.Fingerprint{1}, Transactional: true}
	done, err := job.Do(t.Context(), f.engine, op, nil, func(ctx context.Context) (string, error) { return "", handler(ctx) })
	return done.Replayed, err
}

// want wants so many transfers with a note, as another transaction sees them.
func (f *fixture) want(t *testing.T, note string, want int) {
	t.Helper()
	var rows int
	if err := f.pool.QueryRowContext(t.Context(), "SELECT count(*) FROM reprise_example.transfers WHERE note = $1", note).Scan(&rows); err != nil || rows != want {
		t.Errorf("%d rows %q, %v; want %d", rows, note, err, want)
	}
}

var errRefused = errors.New("refused")

// The rows that each library inserts commit with the record, and are rolled back with the
// attempt.
func TestInsertsCommitWithTheRecord(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for name, insert := range map[string]insert{"sqlx": withSqlx, "bun": withBun(f.pool), "ent": withEnt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for call, c := range []struct {
				result   error // of the function
				rows     int   // afterwards
				replayed bool
			}{{errRefused, 0, false}, {nil, 1, false}, {nil, 1, true}} {
				replayed, err := f.do(t, name, func(ctx context.Context) error {
					tx, err := reprisepg.SQLTx(ctx)
					if err != nil {
						return err
					}
					if err := insert(ctx, tx, order{From: "alice", To: "bob", Amount: 1, Note: name}); err != nil {
						t.Error(err)
					}
					return c.result
				})
				if replayed != c.replayed || !errors.Is(err, c.result) {
					t.Fatalf("call %d: replayed %t, %v", call, replayed, err)
				}
				f.want(t, name, c.rows)
			}
		})
	}
}
