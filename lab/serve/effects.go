package serve

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// effects creates the table that programs write to, and returns the function that
// inserts a row. Any number of processes may create it at once.
func (b *Backend) effects(ctx context.Context, o StoreOptions) (func(context.Context, string) error, error) {
	pool, err := b.pool(ctx, o)
	if err != nil {
		return nil, err
	}
	schema := cmp.Or(o.Schema, reprisepg.DefaultSchema)
	table := pgx.Identifier{schema, "reprise_effects"}.Sanitize()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('reprise_effects', 0))", // IF NOT EXISTS alone does not survive company
			"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{schema}.Sanitize(),
			"CREATE TABLE IF NOT EXISTS " + table + " (op text NOT NULL, attempt integer NOT NULL, owner bytea, at timestamptz NOT NULL)",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("create the table of effects: %w", err)
	}
	statement := "INSERT INTO " + table + " (op, attempt, owner, at) VALUES ($1, $2, $3, clock_timestamp())"
	return insertEffect(statement, pool.Exec, reprisepg.Tx, func(tx pgx.Tx) executes[pgconn.CommandTag] { return tx.Exec }), nil
}

// sqlEffect is the effect of a store over database/sql, in whose table now is the clock.
func sqlEffect(db *sql.DB, tx func(context.Context) (*sql.Tx, error), now string) func(context.Context, string) error {
	statement := "INSERT INTO reprise_effects (op, attempt, owner, at) VALUES (?, ?, ?, " + now + ")"
	return insertEffect(statement, db.ExecContext, tx, func(tx *sql.Tx) executes[sql.Result] { return tx.ExecContext })
}

// executes executes a statement, on a pool or in a transaction.
type executes[R any] = func(ctx context.Context, statement string, args ...any) (R, error)

// insertEffect inserts the effect of one run, in the transaction of the attempt where tx
// finds one, else on the pool. Outside of an attempt its number is 0 and its owner NULL.
func insertEffect[T, R any](
	statement string, pool executes[R], tx func(context.Context) (T, error), in func(T) executes[R],
) func(context.Context, string) error {
	return func(ctx context.Context, op string) error {
		exec := pool
		switch tx, err := tx(ctx); {
		case err == nil:
			exec = in(tx)
		case !errors.Is(err, store.ErrInvalid): // there is a transaction, and it cannot begin
			return fmt.Errorf("effect: %w", err)
		}
		attempt := 0
		if view, ok := reprise.AttemptFrom(ctx); ok {
			attempt = view.Number()
		}
		if _, err := exec(ctx, statement, op, attempt, ownerFrom(ctx)); err != nil {
			return fmt.Errorf("effect: %w", err)
		}
		return nil
	}
}
