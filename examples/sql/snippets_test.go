package programs

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
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/sql/internal/bank"
	"github.com/reprise-go/reprise/servers"
)

// The libraries without a whole program, on the transaction of the attempt.

type transfer struct {
	bun.BaseModel `bun:"table:reprise_example.transfers"`

	Source, Target string
	Amount         int64
	Note           string
}

type insert func(context.Context, *sql.Tx, *transfer) error

var mapper = reflectx.NewMapperFunc("db", strings.ToLower)

func withSqlx(ctx context.Context, own *sql.Tx, t *transfer) error {
	tx := &sqlx.Tx{Tx: own, Mapper: mapper}
	var id int64
	return tx.GetContext(ctx, &id, bank.Record, t.Source, t.Target, t.Amount, t.Note)
}

func withBun(pool *sql.DB) insert {
	db := bun.NewDB(pool, pgdialect.New()) // once for the process
	return func(ctx context.Context, tx *sql.Tx, t *transfer) error {
		_, err := db.NewInsert().Conn(tx).Model(t).Exec(ctx)
		return err
	}
}

// inTx is a driver for db.NewClient(db.Driver(…)) of the code that ent generates. The
// store ends its transaction: those that ent begins and commits are part of that one.
type inTx struct{ *entsql.Driver }

// Tx implements [dialect.Driver].
func (d inTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

func withEnt(ctx context.Context, own *sql.Tx, t *transfer) error {
	driver := inTx{entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: own})}
	tx, err := driver.Tx(ctx)
	if err != nil {
		return err
	}
	query, args := entsql.Dialect(dialect.Postgres).Insert("transfers").Schema("reprise_example").
		Columns("source", "target", "amount", "note").Values(t.Source, t.Target, t.Amount, t.Note).Query()
	if err := tx.Exec(ctx, query, args, nil); err != nil {
		return err
	}
	return tx.Commit()
}

// The rows that each library inserts commit with the record, and are rolled back with the
// attempt.
func TestInsertsCommitWithTheRecord(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", servers.StartPostgres(t, "fsync=on").URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err := bank.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := reprise.New(st, reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	errRefused := errors.New("refused")
	for name, insert := range map[string]insert{"sqlx": withSqlx, "bun": withBun(db), "ent": withEnt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := reprise.Operation{Scope: "snippets", Key: name, Fingerprint: store.Fingerprint{1}}
			for call, c := range []struct {
				result   error // of the function
				rows     int   // afterwards
				replayed bool
			}{{errRefused, 0, false}, {nil, 1, false}, {nil, 1, true}} {
				done, err := reprise.Do(t.Context(), engine, op, nil, func(ctx context.Context) (string, error) {
					tx, err := bank.Tx(ctx)
					if err == nil {
						err = insert(ctx, tx, &transfer{Source: "alice", Target: "bob", Amount: 1, Note: name})
					}
					if err != nil {
						t.Error(err)
					}
					return name, c.result
				})
				if done.Replayed != c.replayed || !errors.Is(err, c.result) {
					t.Fatalf("call %d: replayed %t, %v", call, done.Replayed, err)
				}
				var rows int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM reprise_example.transfers WHERE note = $1", name).Scan(&rows); err != nil || rows != c.rows {
					t.Errorf("call %d: %d rows, %v; want %d", call, rows, err, c.rows)
				}
			}
		})
	}
}
