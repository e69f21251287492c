package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// A call of List looks at about scannedPerPage records, in statements that look at
// scannedAtOnce each: so few that the planner uses the primary key, and that no statement
// takes long.
const (
	scannedPerPage = 10_000
	scannedAtOnce  = 1000
)

// List returns records in the order of the IDs. Page.Total comes from the
// statistics of the table, which ANALYZE and autovacuum bring up to date.
func (t *Table) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	after, err := t.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	for page.Scanned < scannedPerPage && len(page.Records) < q.Limit {
		next, err := t.listStep(ctx, &page, &q, after)
		if err != nil {
			return store.Page{}, err
		}
		if next == nil {
			if q.After == "" {
				page.Total = int64(page.Scanned) // that was all of them
			}
			return page, nil
		}
		after = next
	}
	page.Next = t.cursor(after)
	return page, nil
}

// listStep adds the next records to page, and returns the ID behind which the next step
// starts; nil is the end.
func (t *Table) listStep(ctx context.Context, page *store.Page, q *store.Query, after []byte) (next []byte, err error) {
	var (
		states  = q.States
		limit   = q.Limit - len(page.Records)
		added   []store.Record
		looked  int64
		last    []byte
		lastOne int64 // the number of the last record of added, among those looked at
	)
	if states == 0 {
		states = store.States(store.StateRunning, store.StateLapsed, store.StateCompleted, store.StateExpired, store.StateUnreadable, store.StateUnknown)
	}
	err = t.Run(ctx, "list", t.Statements.list, func(rows pgx.Rows) error {
		added, lastOne = added[:0], 0
		for rows.Next() {
			var (
				row shown
				n   *int64
			)
			if err := row.scan(rows, &n, &looked, &last, &page.Total); err != nil {
				return err
			}
			if n == nil {
				continue
			}
			added, lastOne = append(added, row.record()), *n
		}
		return nil
	}, after, int32(states), q.Label, Microseconds(q.OlderThan), limit) //nolint:gosec // states are few
	if err != nil {
		return nil, err
	}
	page.Records = append(page.Records, added...)
	switch {
	case len(added) == limit && lastOne < looked:
		page.Scanned += int(lastOne)
		return added[len(added)-1].ID[:], nil
	case looked < scannedAtOnce:
		page.Scanned += int(looked)
		return nil, nil
	}
	page.Scanned += int(looked)
	return last, nil
}

// cursor returns the text of a position. It names the table.
func (t *Table) cursor(after []byte) string { return t.cursorPrefix() + hex.EncodeToString(after) }

func (t *Table) cursorPrefix() string {
	table := sha256.Sum256([]byte(t.Names.Lock))
	return "postgres-" + hex.EncodeToString(table[:6]) + "-"
}

// parseCursor reads a cursor, the reverse of cursor.
func (t *Table) parseCursor(text string) ([]byte, error) {
	if text == "" {
		return []byte{}, nil
	}
	position, found := strings.CutPrefix(text, t.cursorPrefix())
	after, err := hex.DecodeString(position)
	if !found || err != nil || len(after) == 0 {
		return nil, Invalid("Query.After is not a cursor of the table %s; start the listing again", t.Names.records)
	}
	return after, nil
}
