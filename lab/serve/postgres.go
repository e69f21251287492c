package serve

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5/pgxpool"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// openPostgres opens the store in PostgreSQL.
func openPostgres(ctx context.Context, b *Backend, o StoreOptions) error {
	pool, err := b.pool(ctx, o)
	if err != nil {
		return err
	}
	store, err := reprisepg.New(pool, postgresConfig(o))
	if err != nil {
		return err
	}
	b.Store = store
	return reprisepg.Migrate(ctx, pool, postgresConfig(o))
}

func postgresConfig(o StoreOptions) reprisepg.Config {
	return reprisepg.Config{Schema: o.Schema, TxTimeout: o.TxTimeout, PurgeEvery: -1} // Options.Purge says when to purge, for every store
}

// pool returns the pool of the backend, which it opens when it is first asked for.
func (b *Backend) pool(ctx context.Context, o StoreOptions) (*pgxpool.Pool, error) {
	if b.postgres != nil {
		return b.postgres, nil
	}
	if o.PostgresURL == "" {
		return nil, errors.New("needs -postgres-url")
	}
	c, err := pgxpool.ParseConfig(o.PostgresURL)
	if err != nil {
		return nil, err
	}
	if o.Pool > 0 {
		c.MaxConns = int32(min(o.Pool, math.MaxInt32))
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	b.postgres = pool
	b.closers = append(b.closers, pool.Close)
	return pool, nil
}
