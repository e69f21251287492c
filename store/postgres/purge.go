package reprisepg

import (
	"context"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Purge deletes records that have expired, and empties those whose payload is no longer
// replayed. Any number of processes may purge at once: each skips records that another is
// about to purge or to claim.
//
// It continues where the last call of this store ended: the records before that are
// deleted, but as long as an old snapshot keeps their entries, a statement that starts at
// the front reads all of them again. After a call that found fewer than limit, the next
// one starts at the front.
func (t *table) Purge(ctx context.Context, limit int) (purged int, err error) {
	from, last := t.purgeFrom.Load(), int64(0)
	err = t.Write(ctx, "purge", func(ctx context.Context, on sqlstore.Conn) error {
		return t.Dialect.Executed(on.Query(ctx, t.statements.purge, func(row sqlstore.Row) error { return row.Scan(&purged, &last) }, limit, from))
	})
	if err != nil {
		return 0, err
	}
	if purged < limit {
		last = 0
	}
	t.purgeFrom.Store(last)
	return purged, nil
}
