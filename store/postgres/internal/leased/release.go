package leased

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// Release implements [store.Store] in one statement if it finds a record of the owner.
//
// If it finds none, the owner's claim may be on its way: its caller gave up, and the
// server executes it or waits for its commit. Release then waits for every claim that
// begins an attempt on the ID, and looks once more. If ctx ends first, the error is
// ErrUnknown.
func (s *Store) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	return s.table.On(ctx, "release", func(conn *pgx.Conn) error {
		own, err := s.releaseOn(ctx, conn, id, owner)
		if err != nil || own {
			return err
		}
		err = table.Query(ctx, conn, s.statements.waitForClaim, []any{s.table.Options.ExecMode, lockKey(id)},
			func(pgx.Rows) error { return nil })
		if err == nil {
			_, err = s.releaseOn(ctx, conn, id, owner)
		}
		return err
	})
}

// releaseOn deletes the record that owner claimed, and reports whether it found a record
// of owner, completed or not.
func (s *Store) releaseOn(ctx context.Context, conn *pgx.Conn, id store.ID, owner store.Owner) (own bool, err error) {
	readable := true // also where there is no record
	err = table.Query(ctx, conn, s.statements.release, []any{s.table.Options.ExecMode, id[:], owner[:]}, func(rows pgx.Rows) error {
		if !rows.Next() {
			return nil
		}
		return rows.Scan(&readable, &own)
	})
	if err == nil && !readable {
		err = record.Corrupt("postgres", "release")
	}
	return own, err
}
