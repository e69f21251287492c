package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Purgeable counts the records that Purge would delete now, up to limit (1 or more), for
// a program that shows how much there is to do. It reads each of them.
func (t *records) Purgeable(ctx context.Context, limit int) (count int, err error) {
	if limit < 1 {
		return 0, invalid("counting up to %d records: want 1 or more", limit)
	}
	err = t.run(ctx, "count", t.sql.purgeable, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&count)
	}, limit)
	return count, err
}
