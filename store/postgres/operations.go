package reprisepg

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// operations are the methods for operators, which both stores have.
type operations struct{ table *table.Table }

// newTable returns the table that c names. The error wraps ErrInvalid.
func newTable(db wire.Database, c Config) (*table.Table, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	return table.New(db, o)
}

// Check implements [store.Checker]: it checks the settings of the server as a connection
// of this pool sees them, the schema, the privileges of the role, and whether the
// settings of pgx suit a pooler. It does not write.
func (o *operations) Check(ctx context.Context) ([]store.Finding, error) { return o.table.Check(ctx) }

// Inspect implements [store.Inspector].
func (o *operations) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	return o.table.Inspect(ctx, id)
}

// List implements [store.Inspector], in the order of the IDs. Page.Total comes from the
// statistics of the table, which ANALYZE and autovacuum bring up to date.
func (o *operations) List(ctx context.Context, q store.Query) (store.Page, error) {
	return o.table.List(ctx, q)
}

// Resolve implements [store.Inspector]. An attempt that comes back afterwards finds
// that it lost the record.
func (o *operations) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return o.table.Resolve(ctx, id, r)
}

// Purge implements [store.Purger], for a limit of 1 to 100,000 records. Any number of
// processes may purge at once: each skips records that another is about to purge or to
// claim.
//
// It continues where the last call of this store ended. After a call that found fewer
// than limit, the next one starts at the front again.
func (o *operations) Purge(ctx context.Context, limit int) (purged int, err error) {
	return o.table.Purge(ctx, limit)
}

// Maintain implements [store.Maintainer]: it purges at the pace of [Config.Purge] until
// ctx ends, and skips a round while another process purges. An engine calls it.
func (o *operations) Maintain(ctx context.Context) { o.table.Maintain(ctx) }

// Purgeable counts the records that Purge would change now, up to limit (1 or more), for
// a program that shows how much there is to do. It reads each of them.
func (o *operations) Purgeable(ctx context.Context, limit int) (count int, err error) {
	return o.table.Purgeable(ctx, limit)
}
