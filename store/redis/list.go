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
	// keysPerPage is about how many keys the server looks at for a page, also those of
	// others.
	keysPerPage = 10_000

	// keysPerStep is how many it looks at for one SCAN, which blocks it for that long.
	keysPerStep = 500
)

// List implements [store.Inspector] by scanning the primaries one after the other,
// which looks at all keys of a server, also at those of others. Where a server was
// replaced or restarted, or a cluster got another shape, a listing starts again with that
// server or with the first one, and shows records again. A listing does not notice keys
// that a cluster moves at that time, before the move of their slot is complete.
//
// [store.Page].Total is the number of keys of the servers, as long as they seem to be
// the store's.
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
	if at, err = l.scan(ctx, nodes, at); err != nil {
		return store.Page{}, err
	}

	// A key that moved to a server that was scanned already would be missed.
	changed, err := s.listing(ctx)
	if err != nil {
		return store.Page{}, err
	}
	if changed.shape != nodes.shape {
		nodes, at = changed, position{}
		if at.last, err = nodes.identity(ctx, 0); err != nil {
			return store.Page{}, err
		}
	}
	if !at.over {
		at.shape = nodes.shape
		l.page.Next = s.cursor(at)
	}
	l.page.Total = l.total(ctx, nodes, q.After == "" && at.over)
	return l.page, nil
}

// scan makes the page, and returns where the listing goes on. A server that was replaced
// while it was scanned is scanned again: the positions are meaningless to another
// process.
func (l *lister) scan(ctx context.Context, nodes listing, at position) (position, error) {
	for looked := 0; ; {
		first, err := nodes.identity(ctx, at.node)
		if err != nil {
			return at, err
		}
		over := false
		for !over && looked < keysPerPage && len(l.page.Records) < l.query.Limit {
			if at.stepper, err = l.step(ctx, nodes.clients[at.node], at.stepper); err != nil {
				return at, err
			}
			looked += keysPerStep
			over = at.scan == 0 && at.after == nil
		}
		if at.last, err = nodes.identity(ctx, at.node); err != nil {
			return at, err
		}
		switch {
		case at.last.process != first.process:
			at.stepper = stepper{}
			return at, nil
		case !over:
			return at, nil
		case at.node == len(nodes.clients)-1:
			at.over = true
			return at, nil
		}
		at.node++
	}
}

// lister makes one page.
type lister struct {
	store *Store
	query *store.Query
	page  store.Page
	shown map[store.ID]bool // in this page: a scan may show a key twice
	steps int
	keys  int // that the steps have found, also those of payloads

	records int // those of them that are of records
}

// stepper is where the listing of one server goes on.
type stepper struct {
	scan uint64 // the cursor of SCAN

	// Where a page had no room for all records of a step, the step is repeated: those that
	// it showed already are those up to after, in the order of their IDs, if the step ends
	// where it ended.
	after []byte
	next  uint64
}

// step scans the next keys of a server, and adds the records that the query selects.
func (l *lister) step(ctx context.Context, node *redis.Client, at stepper) (stepper, error) {
	keys, next, err := node.Scan(ctx, at.scan, l.store.pattern(), keysPerStep).Result()
	if err != nil {
		return at, fail(classify(err).class, err)
	}
	l.steps++
	l.keys += len(keys)
	var after []byte
	if at.after != nil && next == at.next {
		after = at.after
	}
	ids := l.ids(keys, after)
	found, err := l.inspect(ctx, ids)
	if err != nil {
		return at, err
	}
	l.page.Scanned += len(ids)
	room := l.query.Limit - len(l.page.Records)
	if len(found) <= room {
		l.page.Records = append(l.page.Records, found...)
		return stepper{scan: next}, nil
	}
	slices.SortFunc(found, func(a, b store.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	l.page.Records = append(l.page.Records, found[:room]...)
	return stepper{scan: at.scan, after: found[room-1].ID[:], next: next}, nil
}

// ids returns the IDs of those keys that are keys of records, that come after the given
// one, and that are not in the page.
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
	commands := make([]command, len(ids))
	open := make([]*command, len(ids))
	for i, id := range ids {
		c := &commands[i]
		c.script = record.InspectScript
		c.fixed = append(c.buf[:0], "record"...)
		l.store.call(ctx, c, id, &c.fixed)
		open[i] = c
	}
	l.store.run(ctx, open)

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

// total estimates how many records there are: all that were looked at, where that was all
// of them, and otherwise as many of the keys as in this page, unless many of them belong
// to others.
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
			return 0 // it needs a permission
		}
		sum += n
	}
	return sum * int64(l.records) / int64(l.keys)
}
