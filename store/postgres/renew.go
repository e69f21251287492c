package reprisepg

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Renew extends the leases of a batch in one statement.
func (t *table) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	ids, owners, leases := make([][]byte, len(rs)), make([][]byte, len(rs)), make([]int64, len(rs))
	for i := range rs {
		ids[i], owners[i], leases[i] = rs[i].ID[:], rs[i].Owner[:], rs[i].Lease.Microseconds()
	}
	statuses := make([]store.RenewStatus, 0, len(rs))
	err := t.Write(ctx, "renew", func(ctx context.Context, on sqlstore.Conn) error {
		statuses = statuses[:0]
		return t.Dialect.Executed(on.Query(ctx, t.statements.renew, func(row sqlstore.Row) error {
			var word string
			err := row.Scan(&word)
			statuses = append(statuses, renewStatus(word))
			return err
		}, ids, owners, leases))
	})
	if err != nil {
		return nil, err
	}
	if len(statuses) != len(rs) {
		return nil, fmt.Errorf("%w: postgres: renew: the server gave %d answers to %d requests", store.ErrUnknown, len(statuses), len(rs))
	}
	return statuses, nil
}

// renewStatus translates the words of renew.sql.
func renewStatus(word string) store.RenewStatus {
	switch word {
	case "renewed":
		return store.Renewed
	case "busy":
		return store.RenewBusy
	case "completed":
		return store.RenewCompleted
	default:
		return store.RenewLost
	}
}
