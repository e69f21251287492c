package sqlstore

import (
	"context"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// Probe tries every operation of st on a new record, and deletes it. The store rival uses
// the same table.
func (t *Table) Probe(ctx context.Context, st, rival store.Store) error {
	return (&probe.Probe{
		Name: t.Dialect.Name, Store: st, Rival: rival, LostRace: ErrLostRace,
		Read: func(ctx context.Context, id store.ID) error {
			_, err := t.Inspect(ctx, id)
			return err
		},
		Delete: func(ctx context.Context, id store.ID) error {
			return t.write(ctx, "delete", func(ctx context.Context, on Conn) error {
				found, err := t.look(ctx, on, id)
				if err != nil {
					return err
				}
				if !found.Found {
					return probe.Unexpected("no row", "the row of the record")
				}
				return t.forget(ctx, on, found)
			})
		},
	}).Run(ctx)
}

// Readable executes the read of a record that does not exist. It fails if the table or a
// column is missing.
func (t *Table) Readable(ctx context.Context) error {
	if _, err := t.look(ctx, t.DB, store.ID{}); err != nil {
		return fmt.Errorf("read the table %s: %w", t.Options.Table, err)
	}
	return nil
}
