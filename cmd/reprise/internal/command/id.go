package command

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// minDigits is the shortest beginning of an ID that is looked for: fewer digits match too
// much, and each look reads the whole store. Logs show 12 digits.
const minDigits = 8

// lookUp returns the record that text names: the 64 digits of its ID, or a beginning of
// them.
func (c *session) lookUp(ctx context.Context, st *connect.Store, text string) (store.Record, error) {
	id, err := c.resolveID(ctx, st, text)
	if err != nil {
		return store.Record{}, err
	}
	return c.inspect(ctx, st, id)
}

// inspect reads one record.
func (c *session) inspect(ctx context.Context, st *connect.Store, id store.ID) (store.Record, error) {
	bounded, cancel := st.Bounded(ctx)
	defer cancel()
	r, err := st.Look.Inspect(bounded, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, findings("there is no record with the ID %s in %s: it was never written, was released, or its retention has ended", id, st.Name)
	case err != nil:
		return r, storeFailed(ctx, "reading the record "+id.Short(), err)
	}
	return r, nil
}

// resolveID returns the ID that text names.
func (c *session) resolveID(ctx context.Context, st *connect.Store, text string) (store.ID, error) {
	var id store.ID
	digits := strings.ToLower(strings.TrimSpace(text))
	if strings.Trim(digits, "0123456789abcdef") != "" || len(digits) > 2*len(id) {
		return id, usage("%q is not an ID: want 64 hexadecimal digits, or at least the first %d of them", text, minDigits)
	}
	if len(digits) < minDigits {
		return id, usage("the ID %q is too short: want at least %d digits", text, minDigits)
	}
	if len(digits) == 2*len(id) {
		_, err := hex.Decode(id[:], []byte(digits))
		return id, err
	}
	return c.complete(ctx, st, digits)
}

// complete looks for the one record whose ID begins with digits.
func (c *session) complete(ctx context.Context, st *connect.Store, digits string) (store.ID, error) {
	l := scanFor(ctx, st, c.err.Progress(), func(r *store.Record) bool { return strings.HasPrefix(r.ID.String(), digits) })
	if err := c.failed(ctx, l); err != nil {
		return store.ID{}, err
	}
	switch len(l.records) {
	case 0:
		return store.ID{}, findings("no ID of %s looked at begins with %s: the record was never written, was released, or its retention has ended",
			ui.Noun(l.scanned, "record", "records"), digits)
	case 1:
		return l.records[0].ID, nil
	}
	sortByNeed(l.records)
	for i := range l.records[:min(len(l.records), 10)] {
		r := &l.records[i]
		c.err.Line("  ", r.ID.String(), "  ", stateOf(r))
	}
	return store.ID{}, findings("the ID %s is ambiguous: %d records begin with it; give more digits", digits, len(l.records))
}
