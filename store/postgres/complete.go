package reprisepg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// complete ends an attempt whose record is in the table, in a statement of its own. The
// request has been validated.
func (t *records) complete(ctx context.Context, r *store.CompleteRequest) error {
	var done bool
	err := t.on(ctx, "complete", func(conn *pgx.Conn) (err error) {
		done, err = t.completeOn(ctx, conn, r)
		return err
	})
	if err != nil || done {
		return err
	}
	// A new statement: the one above may not see what it waited for.
	if _, err := t.look(ctx, "complete", r.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: postgres: complete: another owner has the record, or there is none", store.ErrLeaseLost)
}

// completeOn completes r once. Where statements are prepared, one statement completes
// every record that is in progress; what became of another the function says.
func (t *records) completeOn(ctx context.Context, conn *pgx.Conn, r *store.CompleteRequest) (done bool, err error) {
	if t.sendingOn(conn) == sendPrepared {
		err := t.send(ctx, conn, true, call{
			t.sql.completeOwn,
			[][]byte{r.ID[:], r.Owner[:], notNull(r.Payload), appendInterval(nil, r.Retention)},
			func(*row) { done = true },
		})
		switch {
		case notPrepared(err):
			t.giveUpPreparing(ctx, err)
		case err != nil || done:
			return done, err
		}
	}
	err = query(ctx, conn, t.sql.complete, []any{
		t.config.ExecMode, r.ID[:], r.Owner[:], notNull(r.Payload), microseconds(r.Retention),
	}, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&done)
	})
	return done, err
}
