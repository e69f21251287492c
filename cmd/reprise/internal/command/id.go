package command

import (
	"context"
	"errors"
	"strings"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// lookUp returns the record that text names: the 64 digits of its ID, or the first 8 or
// more of them.
func (c *session) lookUp(ctx context.Context, st *connect.Store, text string) (store.Record, error) {
	progress, scanned := c.err.Progress(), int64(0)
	id, err := operate.FindID(ctx, st.Look, text, func(page store.Page) {
		scanned += int64(page.Scanned)
		progress.Show(scanned, max(page.Total, 0), "%s looked at", ui.Count(scanned))
	})
	progress.Clear()
	var several *operate.AmbiguousError
	switch {
	case err == nil:
		return c.inspect(ctx, st, id, "")
	case errors.As(err, &several):
		list := make([]string, len(several.Records))
		for i := range several.Records {
			list[i] = several.Records[i].ID.String()
		}
		return store.Record{}, findings("%w: %s", err, strings.Join(list, ", "))
	case errors.Is(err, store.ErrNotFound):
		return store.Record{}, noRecord(ctx, st, "whose ID begins with "+text, "is that the beginning of an ID, and not of a key, which reprise find takes, and ")
	case errors.Is(err, store.ErrInvalid):
		return store.Record{}, usage("%w", err)
	default:
		return store.Record{}, storeFailed(ctx, "looking for the ID "+text, err)
	}
}

// mistaken asks whether the settings that say where the records are, are wrong.
func mistaken(st *connect.Store, elsewhere []string) string {
	text := st.WhereSetting() + " as in the service?"
	if len(elsewhere) > 0 {
		text += " This server has records in " + strings.Join(elsewhere, ", ") + "."
	}
	return text
}

// noRecord says why there may be no record, the mistakes of an operator first. first is
// the beginning of a question about another one.
func noRecord(ctx context.Context, st *connect.Store, what, first string) error {
	return findings("there is no record %s in %s; %s%s Otherwise it was never written, was released, or its retention has ended",
		what, st.Name, first, mistaken(st, st.Elsewhere(ctx)))
}

// inspect reads one record. first is for noRecord.
func (c *session) inspect(ctx context.Context, st *connect.Store, id store.ID, first string) (store.Record, error) {
	r, err := st.Look.Inspect(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, noRecord(ctx, st, "with the ID "+id.String(), first)
	case err != nil:
		return r, storeFailed(ctx, "reading the record "+id.Short(), err)
	}
	return r, nil
}
