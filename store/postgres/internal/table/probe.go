package table

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// probe tries every operation of st on a new record. The catalogue does not show what
// row-level security policies, triggers and missing functions break. The store rival uses
// the same table, and shares no memory with st.
func (t *Table) probe(ctx context.Context, st, rival store.Store) error {
	err := (&probe.Probe{
		Name: "postgres", Store: st, Rival: rival, LostRace: ErrLostRace,
		Advice: "; the server has to offer advisory locks that exclude another session",
		Before: func(ctx context.Context, id store.ID) error { // no other step is certain to call these functions
			return t.Run(ctx, "lock", "SELECT pg_advisory_xact_lock($1::bigint), pg_try_advisory_xact_lock($1::bigint)",
				func(rows pgx.Rows) error { return nil }, int64(binary.BigEndian.Uint64(id[:]))) //nolint:gosec // any 64 bits do
		},
		Read: func(ctx context.Context, id store.ID) error {
			_, err := t.Look(ctx, "inspect", id)
			return err
		},
		Delete: t.deleteProbe,
	}).Run(ctx)
	if err != nil {
		return fmt.Errorf("%w%s", err, t.rowSecurityAdvice(ctx))
	}
	return nil
}

// deleteProbe deletes the record of a probe.
func (t *Table) deleteProbe(ctx context.Context, id store.ID) error {
	deleted := false
	err := t.Run(ctx, "delete", "DELETE FROM "+t.Names.records+" WHERE id = $1::bytea RETURNING id", func(rows pgx.Rows) error {
		deleted = rows.Next()
		return nil
	}, id[:])
	if err == nil && !deleted {
		return probe.Unexpected("no row", "the row of the record")
	}
	return err
}

// rowSecurityAdvice returns the remedy if row-level security applies to this role.
func (t *Table) rowSecurityAdvice(ctx context.Context) string {
	var (
		active bool
		role   string
	)
	err := t.Run(ctx, "check", "SELECT row_security_active($1::text::regclass), current_user::text", func(rows pgx.Rows) error {
		if rows.Next() {
			return rows.Scan(&active, &role)
		}
		return nil
	}, t.Names.records)
	if err != nil || !active {
		return ""
	}
	return fmt.Sprintf("; row-level security applies to this role: CREATE POLICY reprise ON %s TO %s USING (true) WITH CHECK (true)",
		t.Names.records, pgx.Identifier{role}.Sanitize())
}
