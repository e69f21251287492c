package repriseredis

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/prefix"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

const (
	// keysPerPage is about how many keys the server looks at for a page, including keys
	// that are not the store's.
	keysPerPage = 10_000

	// keysPerStep is how many it looks at for one SCAN or step of a count, during which the
	// server executes no other command.
	keysPerStep = 500

	maxElsewhere  = 10        // prefixes
	keysElsewhere = 1_000_000 // that one call of Elsewhere looks at
)

// countScript makes a step of a count.
var countScript = redis.NewScript(fmt.Sprint(record.CountScript.Source))

// List implements [store.Inspector] by scanning the primaries one after the other. A scan
// looks at all keys of a server, including keys that are not the store's. If a server was
// replaced or restarted, or slots of a cluster moved, a listing starts again with the
// first server, and shows records again. It may miss keys of a slot that is being moved
// to another node at that time.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	at, err := s.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	servers, state, err := s.servers(ctx)
	if err != nil {
		return store.Page{}, err
	}
	if at.Servers != state {
		at = position{}
	}

	l := lister{store: s, query: &q, shown: make(map[store.ID]bool)}
	for looked := 0; looked < keysPerPage && len(l.page.Records) < q.Limit && int(at.Node) < len(servers); looked += keysPerStep {
		if err := l.step(ctx, servers[at.Node], &at); err != nil {
			return store.Page{}, err
		}
		if at.Scan == 0 && at.After == (store.ID{}) {
			at.Node++
		}
	}

	// The steps may have been those of two processes, and a key may have moved to a server
	// that was scanned already.
	servers, at.Servers, err = s.servers(ctx)
	if err != nil {
		return store.Page{}, err
	}
	if at.Servers != state {
		at = position{Servers: at.Servers}
	}
	if int(at.Node) < len(servers) {
		l.page.Next = s.cursor(at)
	}
	return l.page, nil
}

// lister makes one page, or a count.
type lister struct {
	store *Store
	query *store.Query
	page  store.Page
	shown map[store.ID]bool // a scan may show a key twice
}

// step scans the next keys of a server, adds the records that the query selects, and
// moves at to the next step.
func (l *lister) step(ctx context.Context, node *redis.Client, at *position) error {
	keys, next, err := node.Scan(ctx, at.Scan, l.store.pattern(l.query.Digits), keysPerStep).Result()
	if err != nil {
		return readError(err)
	}
	if next != at.Next {
		at.After = store.ID{}
	}
	ids := l.ids(keys, at.After)
	found, err := l.store.inspect(ctx, "record", l.query, ids...)
	if err != nil {
		return err
	}
	l.page.Scanned += len(ids)
	if room := l.query.Limit - len(l.page.Records); len(found) > room {
		slices.SortFunc(found, func(a, b store.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		l.page.Records = append(l.page.Records, found[:room]...)
		at.After, at.Next = found[room-1].ID, next
		return nil
	}
	l.page.Records = append(l.page.Records, found...)
	at.Scan, at.After, at.Next = next, store.ID{}, 0
	return nil
}

// ids returns the IDs of those keys that hold records, that come behind after, and that
// were not shown yet.
func (l *lister) ids(keys []string, after store.ID) []store.ID {
	ids := make([]store.ID, 0, len(keys))
	for _, key := range keys {
		if id, ok := l.store.idOf(key); ok && bytes.Compare(id[:], after[:]) > 0 && !l.shown[id] {
			l.shown[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// inspect looks at records in one pipeline, and returns those that q selects. nil selects
// all. what is the argument of inspect.lua. It leaves out those that are gone.
func (s *Store) inspect(ctx context.Context, what string, q *store.Query, ids ...store.ID) ([]store.Record, error) {
	commands := s.runAll(ctx, len(ids), func(c *command, i int) {
		c.script, c.key = record.InspectScript, s.key(ids[i])
		c.fixed = append(c.buf[:0], what...)
		c.callScript(&c.fixed)
	})
	var selected []store.Record
	for i := range commands {
		c := &commands[i]
		if c.err != nil {
			return nil, c.err
		}
		if c.reply()[0] == record.TagNone {
			continue
		}
		r, at, ok := record.ParseView(ids[i], c.reply())
		if !ok {
			return nil, errUnexpected
		}
		if q == nil || q.Selects(&r, at) {
			selected = append(selected, r)
		}
	}
	return selected, nil
}

// Count implements [store.Counter] by a script that scans the primaries one after the
// other, step by step, and by an inspection of each record that it does not find
// completed. The error is ErrUnavailable if a server is replaced meanwhile, or slots of a
// cluster move.
func (s *Store) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	servers, state, err := s.servers(ctx)
	if err != nil {
		return nil, err
	}
	l, counts := lister{store: s, query: &store.Query{}, shown: make(map[store.ID]bool)}, make(map[store.LabelState]int)
	for _, server := range servers {
		for next := ""; next != "0"; {
			if next, err = l.count(ctx, server, cmp.Or(next, "0"), counts, open); err != nil {
				return nil, err
			}
		}
	}
	_, after, err := s.servers(ctx)
	if err == nil && after != state {
		err = fail(store.ErrUnavailable, errors.New("a server was replaced, or slots of the cluster moved, during the count; count again"))
	}
	return counts, err
}

// count counts the records of the next keys of a server, and returns where the step after
// it begins.
func (l *lister) count(ctx context.Context, node *redis.Client, at string, counts map[store.LabelState]int, open func(*store.Record)) (next string, err error) {
	answer, err := countScript.Run(ctx, node, nil, at, l.store.pattern(""), len(l.store.config.Prefix)+keySize, keysPerStep).StringSlice()
	if err != nil {
		return "", readError(err)
	}
	next, keys, ok := record.ParseCount(answer, counts)
	if !ok {
		return "", errUnexpected
	}
	others, err := l.store.inspect(ctx, "record", l.query, l.ids(keys, store.ID{})...)
	for i := range others {
		if r := &others[i]; r.State.WasCompleted() {
			counts[store.LabelState{Label: r.Label, State: r.State}]++
		} else {
			open(r)
		}
	}
	return next, err
}

// Elsewhere implements [store.Surveyor] by scanning the primaries for keys of records. It
// looks at about a million keys.
func (s *Store) Elsewhere(ctx context.Context) ([]string, error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for _, node := range nodes {
		var at uint64
		for looked := 0; looked < keysElsewhere/len(nodes) && len(found) < maxElsewhere; looked += keysPerStep {
			var keys []string
			if keys, at, err = node.Scan(ctx, at, "*{*}", keysPerStep).Result(); err != nil {
				return nil, readError(err)
			}
			for _, key := range keys {
				other := Store{config: Config{Prefix: key[:max(0, len(key)-keySize)]}}
				if _, ok := other.idOf(key); ok && other.config.Prefix != s.config.Prefix && prefix.Check(other.config.Prefix, "") == nil {
					found[other.config.Prefix] = true
				}
			}
			if at == 0 {
				break
			}
		}
	}
	names := slices.Sorted(maps.Keys(found))
	return names[:min(len(names), maxElsewhere)], nil
}
