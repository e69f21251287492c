package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// effects is the table that programs write to.
type effects struct {
	pool *pgxpool.Pool
	sql  string // inserts a row
}

// openEffects creates the table. Any number of processes may do so at once.
func (b *Backend) openEffects(ctx context.Context, o StoreOptions) (*effects, error) {
	pool, err := b.pool(ctx, o)
	if err != nil {
		return nil, err
	}
	schema := o.Schema
	if schema == "" {
		schema = reprisepg.DefaultSchema
	}
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
	return &effects{pool: pool, sql: "INSERT INTO " + table + " (op, attempt, owner, at) VALUES ($1, $2, $3, clock_timestamp())"}, nil
}

// execer is the common method of a pool and a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// insert inserts the effect of one run. Outside of an attempt its number is 0 and its
// owner NULL.
func (e *effects) insert(ctx context.Context, op string) error {
	var db execer = e.pool
	switch tx, err := reprisepg.Tx(ctx); {
	case err == nil:
		db = tx
	case !errors.Is(err, store.ErrInvalid): // there is a transaction, and it cannot begin
		return fmt.Errorf("effect: %w", err)
	}
	attempt := 0
	if view, ok := reprise.AttemptFrom(ctx); ok {
		attempt = view.Number()
	}
	if _, err := db.Exec(ctx, e.sql, op, attempt, ownerFrom(ctx)); err != nil {
		return fmt.Errorf("effect: %w", err)
	}
	return nil
}
