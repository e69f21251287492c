package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// Checked is a store with its checks.
type Checked interface {
	store.Store
	store.Checker
}

// Prove returns an error that names all unsafe findings of st whose code is not accepted,
// or else tries every operation of it on a new record, which it deletes. It logs the
// others.
func (t *Table) Prove(ctx context.Context, st Checked, accepted ...string) error {
	list, err := st.Check(ctx)
	if err != nil {
		return err
	}
	var unsafe []string
	for _, f := range list {
		if f.Severity == store.Unsafe {
			if !slices.Contains(accepted, f.Code) {
				unsafe = append(unsafe, f.Code+": "+f.Detail)
				continue
			}
			f.Detail = "accepted: " + f.Detail
		}
		t.warn(ctx, f)
	}
	if len(unsafe) > 0 {
		return fmt.Errorf("%w: %s: open: %s", store.ErrMisconfigured, t.Dialect.Name, strings.Join(unsafe, "; "))
	}
	return t.probe(ctx, st)
}

// probe tries every operation of st.
func (t *Table) probe(ctx context.Context, st store.Store) error {
	return (&probe.Probe{
		Name: t.Dialect.Name, Store: st, Rival: st, LostRace: ErrLostRace,
		Read: func(ctx context.Context, id store.ID) error {
			_, err := t.Inspect(ctx, id)
			return err
		},
		Delete: func(ctx context.Context, id store.ID) error {
			return t.Write(ctx, "delete", func(ctx context.Context, on Conn) error {
				found, err := t.look(ctx, on, id)
				if err != nil {
					return err
				}
				if !found.Found {
					return probe.Unexpected("no row", "the row of the record")
				}
				return t.change(ctx, on, found, t.statements.remove) // also a trial of the right to delete
			})
		},
	}).Run(ctx)
}
