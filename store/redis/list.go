package repriseredis

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/prefix"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

const (
	// keysPerPage is about how many keys the server looks at for a page, including keys
	// that are not the store's.
	keysPerPage = 10_000

	// keysPerStep is how many it looks at for one SCAN, during which the server executes
	// no other command.
	keysPerStep = 500

	maxElsewhere  = 10        // prefixes
	keysElsewhere = 1_000_000 // that one call of Elsewhere looks at
)

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
		if at.Scan == 0 && at.after == nil {
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
		at = position{bookmark: bookmark{Servers: at.Servers}}
	}
	if int(at.Node) < len(servers) {
		l.page.Next = s.cursor(at)
	}
	return l.page, nil
}

// lister makes one page.
type lister struct {
	store *Store
	query *store.Query
	page  store.Page
	shown map[store.ID]bool // in this page: a scan may show a key twice
}

// step scans the next keys of a server, adds the records that the query selects, and
// moves at to the next step.
func (l *lister) step(ctx context.Context, node *redis.Client, at *position) error {
	keys, next, err := node.Scan(ctx, at.Scan, l.store.pattern(l.query.Digits), keysPerStep).Result()
	if err != nil {
		return readError(err)
	}
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
		c.script, c.key = record.InspectScript, l.store.key(ids[i])
		c.fixed = append(c.buf[:0], "record"...)
		c.callScript(&c.fixed)
	})

	var selected []store.Record
	for i := range commands {
		if err := commands[i].err; err != nil {
			return nil, err
		}
		answer := commands[i].reply()
		if answer[0] == record.TagNone {
			continue
		}
		r, at, ok := record.ParseView(ids[i], answer)
		if !ok {
			return nil, errUnexpected
		}
		if l.query.Selects(&r, at) {
			selected = append(selected, r)
		}
	}
	return selected, nil
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
				if name, ok := prefixOf(key); ok && name != s.config.Prefix {
					found[name] = true
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

// prefixOf returns the prefix of the key of a record of any store.
func prefixOf(key string) (string, bool) {
	start := len(key) - keySize
	if start <= 0 || !strings.HasSuffix(key, "}") || !strings.HasPrefix(strings.TrimLeft(key[start:], "}"), "{") {
		return "", false
	}
	return key[:start], prefix.Check(key[:start], "") == nil
}
