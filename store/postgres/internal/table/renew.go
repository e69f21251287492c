package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// Renew extends the leases of a batch in one statement.
func (t *Table) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	ids, owners, leases := make([][]byte, len(rs)), make([][]byte, len(rs)), make([]int64, len(rs))
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
		ids[i], owners[i], leases[i] = rs[i].ID[:], rs[i].Owner[:], Microseconds(rs[i].Lease)
	}
	statuses := make([]store.RenewStatus, 0, len(rs))
	err := t.Run(ctx, "renew", t.Statements.renew, func(rows pgx.Rows) error {
		statuses = statuses[:0]
		for rows.Next() {
			var word string
			if err := rows.Scan(&word); err != nil {
				return err
			}
			statuses = append(statuses, renewStatus(word))
		}
		return nil
	}, ids, owners, leases)
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

// NotNull makes the empty payload a value: NULL is how a row says that it has none.
func NotNull(payload []byte) []byte {
	if payload == nil {
		return []byte{}
	}
	return payload
}
