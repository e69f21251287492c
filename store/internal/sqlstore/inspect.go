package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Inspect returns the record of id, or ErrNotFound.
func (t *Table) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	var found *row
	err := t.Read(ctx, "inspect", func(ctx context.Context, on Conn) (err error) {
		found, err = t.query(ctx, on, t.statements.inspect, id, true)
		return err
	})
	switch {
	case err != nil:
		return store.Record{}, err
	case !found.visible():
		return store.Record{}, fmt.Errorf("%w: %s: inspect", store.ErrNotFound, t.Dialect.Name)
	}
	return found.view(), nil
}

// visible reports whether operators see the record. They always see an unreadable one.
func (r *row) visible() bool { return r.Found && (r.seen() || !r.Readable()) }

// Resolve ends a record on behalf of an operator.
func (t *Table) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	payload := append([]byte{}, r.Payload...)
	return t.Write(ctx, "resolve", func(ctx context.Context, on Conn) error {
		if _, err := t.lookTwice(ctx, on, id); err != nil { // waits for those who are writing it
			return err
		}
		found, err := t.query(ctx, on, t.statements.inspect, id, true)
		if err != nil {
			return err
		}
		v := found.view()
		switch {
		case !found.visible(), v.Fence != r.Fence, !resolvable(v.State, r.State):
			return fmt.Errorf("%w: %s: resolve", store.ErrRecordChanged, t.Dialect.Name)
		case r.Forget:
			return t.forget(ctx, on, found)
		}
		return t.complete(ctx, on, found, &ending{
			payload: payload, replay: r.Retention.Microseconds(), retention: found.retention, horizon: found.horizon, valid: found.ValidUntil,
		})
	})
}

// resolvable reports whether an operator who saw a record in the state was may end it now
// that its state is is.
func resolvable(is, was store.RecordState) bool {
	switch is {
	case store.StateLapsed:
		return was == 0 || was == store.StateLapsed || was == store.StateUnknown
	case store.StateUnknown:
		return was == 0 || was == store.StateUnknown
	case store.StateCompleted, store.StateExpired:
		return was.WasCompleted()
	case store.StateUnreadable:
		return was == store.StateUnreadable
	default:
		return false
	}
}

// A call of List reads about scannedPerPage records, in statements of scannedAtOnce.
const (
	scannedPerPage = 10_000
	scannedAtOnce  = 1000
)

// List returns records in the order of their IDs.
func (t *Table) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	after, err := t.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	// The statements read in the order of the IDs, from those that begin with these bytes.
	first, _ := hex.DecodeString(q.Digits[:len(q.Digits)&^1])
	if q.After == "" {
		after = first[:min(len(first), len(store.ID{})-1)] // before the ID that all digits name
	}
	var page store.Page
	for {
		var rows []row
		err := t.Read(ctx, "list", func(ctx context.Context, on Conn) (err error) {
			rows, err = t.listAfter(ctx, on, after)
			return err
		})
		if err != nil {
			return store.Page{}, err
		}
		for i := range rows {
			r := &rows[i]
			if !bytes.HasPrefix(r.id[:], first) {
				return page, nil
			}
			page.Scanned++
			after = r.id[:]
			if view := r.view(); r.visible() && q.Selects(&view, time.UnixMicro(r.At)) {
				view.Payload = nil
				page.Records = append(page.Records, view)
			}
			if len(page.Records) == q.Limit {
				page.Next = t.cursor(after)
				return page, nil
			}
		}
		switch {
		case len(rows) < scannedAtOnce:
			return page, nil
		case page.Scanned >= scannedPerPage:
			page.Next = t.cursor(after)
			return page, nil
		}
	}
}

// listAfter reads the rows behind an ID.
func (t *Table) listAfter(ctx context.Context, on Conn, after []byte) ([]row, error) {
	at := time.Now().UnixMicro()
	var list []row
	err := on.Query(ctx, t.statements.list, func(from Row) error {
		var r row
		err := r.scan(from, true, at)
		list = append(list, r)
		return err
	}, after, scannedAtOnce)
	return list, err
}

// Count reads the whole table twice: for the rows that are not completed, and to count
// the others. It reads an embedded database in parts, between which others get the
// connection, or write where a reader excludes writers.
func (t *Table) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	counts := map[store.LabelState]int{}
	if !t.Dialect.Embedded {
		return counts, t.count(ctx, open, counts)
	}
	for first := range 256 { // by the first byte of the ID
		end := []byte{byte(first + 1)}
		if first == 255 {
			end = bytes.Repeat([]byte{255}, 33) // no ID is as long
		}
		if err := t.count(ctx, open, counts, []byte{byte(first)}, end); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// count counts a part of the table.
func (t *Table) count(ctx context.Context, open func(*store.Record), counts map[store.LabelState]int, part ...any) error {
	var found map[store.LabelState]int
	err := t.Read(ctx, "count", func(ctx context.Context, on Conn) error {
		at, everything := time.Now().UnixMicro(), store.Query{}
		err := on.Query(ctx, t.statements.unfinished, func(from Row) error {
			var r row
			err := r.scan(from, true, at)
			if view := r.view(); err == nil && r.visible() && everything.Selects(&view, time.UnixMicro(r.At)) {
				open(&view)
			}
			return err
		}, part...)
		if err != nil {
			return err
		}
		found = map[store.LabelState]int{}
		now := t.Dialect.now()
		return on.Query(ctx, t.statements.finished, func(from Row) error {
			values := make([]any, 4)
			if err := from.Scan(&values[0], &values[1], &values[2], &values[3]); err != nil {
				return err
			}
			if values[0] == nil {
				return errSession
			}
			c := cells{values: values[1:]}
			label, all, expired := c.text(), int(c.integer()), int(c.integer())
			if label != store.ProbeLabel && all > 0 {
				found[store.LabelState{Label: label, State: store.StateCompleted}] = all - expired
				found[store.LabelState{Label: label, State: store.StateExpired}] = expired
			}
			return nil
		}, append([]any{now, now}, part...)...)
	})
	for key, n := range found {
		counts[key] += n
	}
	return err
}

// TableColumns is a list of names that no table but those of stores has all of, in SQL,
// and TableColumnsCount is how many they are.
const (
	TableColumns      = "('fence', 'revision', 'fingerprint', 'replay_until', 'valid_until', 'due_at', 'at_most_once')"
	TableColumnsCount = "7"
)

// Elsewhere returns the names of other tables of stores that have a row.
func (t *Table) Elsewhere(ctx context.Context) (names []string, err error) {
	err = t.Read(ctx, "look elsewhere", func(ctx context.Context, on Conn) error {
		names = nil
		var tables, quoted []string
		err := on.Query(ctx, t.Dialect.Tables, func(r Row) error {
			var name, quote string
			err := r.Scan(&name, &quote)
			tables, quoted = append(tables, name), append(quoted, quote)
			return err
		})
		for i := 0; err == nil && i < len(tables); i++ {
			if tables[i] != t.Options.Table {
				err = on.Query(ctx, "SELECT 1 FROM "+quoted[i]+" LIMIT 1", func(Row) error {
					names = append(names, tables[i])
					return nil
				})
			}
		}
		return err
	})
	return names, err
}

// cursor returns the text of a position. It names the table.
func (t *Table) cursor(after []byte) string { return t.cursorPrefix() + hex.EncodeToString(after) }

func (t *Table) cursorPrefix() string {
	table := sha256.Sum256([]byte(t.Options.Table))
	return t.Dialect.Name + "-" + hex.EncodeToString(table[:6]) + "-"
}

// parseCursor reads a cursor, the reverse of cursor.
func (t *Table) parseCursor(text string) ([]byte, error) {
	if text == "" {
		return []byte{}, nil
	}
	position, found := strings.CutPrefix(text, t.cursorPrefix())
	after, err := hex.DecodeString(position)
	if !found || err != nil || len(after) == 0 {
		return nil, Invalid(t.Dialect.Name, "Query.After is not a cursor of the table %s; start the listing again", t.Options.Table)
	}
	return after, nil
}
