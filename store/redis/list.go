package repriseredis

import (
	"bytes"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

const (
	// keysPerPage is about how many keys the server looks at for a page, including keys
	// that are not the store's.
	keysPerPage = 10_000

	// keysPerStep is how many it looks at for one SCAN, during which the server executes
	// no other command.
	keysPerStep = 500
)

// List implements [store.Inspector] by scanning the primaries one after the other. A scan
// looks at all keys of a server, including keys that are not the store's. If a server was
// replaced or restarted, or slots of a cluster moved, a listing starts again with that
// server or with the first one, and shows records again. It may miss keys of a slot that
// is being moved to another node at that time.
//
// [store.Page].Total is an estimate from the number of keys of the servers; it is 0 when
// many of them are not the store's.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	at, err := s.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	nodes, err := s.listing(ctx)
	if err != nil {
		return store.Page{}, err
	}
	if q.After != "" {
		if at, err = nodes.resume(ctx, at); err != nil {
			return store.Page{}, err
		}
	}

	l := lister{store: s, query: &q, shown: make(map[store.ID]bool)}
	if err := l.scan(ctx, nodes, &at); err != nil {
		return store.Page{}, err
	}

	// The listing would miss a key that moved to a server that was scanned already.
	changed, err := s.listing(ctx)
	if err != nil {
		return store.Page{}, err
	}
	if changed.shape != nodes.shape {
		nodes, at = changed, position{}
		if err := nodes.mark(ctx, &at); err != nil {
			return store.Page{}, err
		}
	}
	if !at.over {
		at.Shape = nodes.shape
		l.page.Next = s.cursor(at)
	}
	l.page.Total = l.total(ctx, nodes, q.After == "" && at.over)
	return l.page, nil
}

// scan fills the page, and moves at to where the next one starts. A server that was
// replaced while it was scanned is scanned again, because a position means nothing to
// another process.
func (l *lister) scan(ctx context.Context, nodes listing, at *position) error {
	for looked := 0; ; at.Node++ {
		if err := nodes.mark(ctx, at); err != nil {
			return err
		}
		process, over := at.Process, false
		for !over && looked < keysPerPage && len(l.page.Records) < l.query.Limit {
			if err := l.step(ctx, nodes.clients[at.Node], at); err != nil {
				return err
			}
			looked += keysPerStep
			over = at.Scan == 0 && at.after == nil
		}
		if err := nodes.mark(ctx, at); err != nil {
			return err
		}
		switch {
		case at.Process != process:
			at.Scan, at.after, at.Next = 0, nil, 0
			return nil
		case !over:
			return nil
		case int(at.Node) == len(nodes.clients)-1:
			at.over = true
			return nil
		}
	}
}

// lister makes one page.
type lister struct {
	store *Store
	query *store.Query
	page  store.Page
	shown map[store.ID]bool // in this page: a scan may show a key twice
	steps int
	keys  int // how many the steps have found, including those of payloads

	records int // how many of these keys hold records
}

// step scans the next keys of a server, adds the records that the query selects, and
// moves at to the next step.
func (l *lister) step(ctx context.Context, node *redis.Client, at *position) error {
	keys, next, err := node.Scan(ctx, at.Scan, l.store.pattern(l.query.Digits), keysPerStep).Result()
	if err != nil {
		return readError(err)
	}
	l.steps++
	l.keys += len(keys)
	if next != at.Next {
		at.after = nil
	}
	ids := l.ids(keys, at.after)
	found, err := l.inspect(ctx, ids)
	if err != nil {
		return err
	}
	l.page.Scanned += len(ids)
	if room := l.query.Limit - len(l.page.Records); len(found) > room {
		slices.SortFunc(found, func(a, b store.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		l.page.Records = append(l.page.Records, found[:room]...)
		at.after, at.Next = found[room-1].ID[:], next
		return nil
	}
	l.page.Records = append(l.page.Records, found...)
	at.Scan, at.after, at.Next = next, nil, 0
	return nil
}

// ids returns the IDs of those keys that hold records, that come behind after, and that
// were not in the page yet.
func (l *lister) ids(keys []string, after []byte) []store.ID {
	ids := make([]store.ID, 0, len(keys))
	for _, key := range keys {
		id, ok := l.store.idOf(key)
		if !ok {
			continue
		}
		l.records++
		if bytes.Compare(id[:], after) > 0 && !l.shown[id] {
			l.shown[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// inspect looks at records in one pipeline, and returns those that the query selects,
// without their payloads. It leaves out those that are gone.
func (l *lister) inspect(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commands := l.store.runAll(ctx, len(ids), func(c *command, i int) {
		c.script = record.InspectScript
		c.fixed = append(c.buf[:0], "record"...)
		l.store.call(c, ids[i], &c.fixed)
	})

	var selected []store.Record
	for i := range commands {
		answer, err := commands[i].reply(), commands[i].err
		if err != nil {
			return nil, err
		}
		if answer[0] == record.TagNone {
			continue
		}
		r, at, ok := record.ParseView(ids[i], answer)
		if !ok {
			return nil, fail(store.ErrUnknown, errUnexpected)
		}
		if l.query.Selects(&r, at) {
			selected = append(selected, r)
		}
	}
	return selected, nil
}

// total estimates how many records there are. If all is true, the page has looked at
// every record. Otherwise it applies the share of records among the keys of this page to
// the keys of all servers, unless many keys are not the store's: then it is 0.
func (l *lister) total(ctx context.Context, nodes listing, all bool) int64 {
	if all {
		return int64(l.page.Scanned)
	}
	if l.keys < l.steps*keysPerStep*9/10 {
		return 0
	}
	var sum int64
	for _, node := range nodes.clients {
		n, err := node.DBSize(ctx).Result()
		if err != nil {
			return 0 // the user may lack the permission for DBSIZE
		}
		sum += n
	}
	return sum * int64(l.records) / int64(l.keys)
}
