package command

import (
	"context"
	"errors"
	"strings"

	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// lookUp returns the record that text names: the 64 digits of its ID, or the first 8 or
// more of them.
func (c *session) lookUp(ctx context.Context, st *connect.Store, text string) (store.Record, error) {
	progress, scanned := c.err.Progress(), int64(0)
	id, err := stored.FindID(ctx, st.Look, text, func(page store.Page) {
		scanned += int64(page.Scanned)
		progress.Show(scanned, max(page.Total, 0), "%s looked at", ui.Count(scanned))
	})
	progress.Clear()
	var several *stored.AmbiguousError
	switch {
	case err == nil:
		return c.inspect(ctx, st, id)
	case errors.As(err, &several):
		list := make([]string, len(several.Records))
		for i := range several.Records {
			list[i] = several.Records[i].ID.String()
		}
		return store.Record{}, findings("%w: %s", err, strings.Join(list, ", "))
	case errors.Is(err, store.ErrNotFound):
		return store.Record{}, findings("%w: if they are a client's key, reprise find finds it; otherwise the record was never written, was released, or its retention has ended", err)
	case errors.Is(err, store.ErrInvalid):
		return store.Record{}, usage("%w", err)
	default:
		return store.Record{}, storeFailed(ctx, "looking for the ID "+text, err)
	}
}

// inspect reads one record.
func (c *session) inspect(ctx context.Context, st *connect.Store, id store.ID) (store.Record, error) {
	r, err := st.Look.Inspect(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, findings("there is no record with the ID %s in %s: it was never written, was released, or its retention has ended", id, st.Name)
	case err != nil:
		return r, storeFailed(ctx, "reading the record "+id.Short(), err)
	}
	return r, nil
}
