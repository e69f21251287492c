package memstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// scannedPerPage is about how many records one call of List looks at: whole shards.
const scannedPerPage = 10_000

// List implements [store.Inspector]. A listing goes through the shards, and through the
// records of a shard in the order of their IDs.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	if err := checkContext(ctx); err != nil {
		return store.Page{}, err
	}
	at, err := s.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Total: s.usage.records.Load()}
	for {
		last, full := s.appendShard(&page, &q, at)
		switch {
		case full:
			page.Next = s.cursor(at.shard, last)
			return page, nil
		case at.shard == shardCount-1:
			return page, nil
		}
		at = position{shard: at.shard + 1}
		if page.Scanned >= scannedPerPage || len(page.Records) == q.Limit {
			page.Next = s.cursor(at.shard, nil)
			return page, nil
		}
	}
}

// Count implements [store.Counter].
func (s *Store) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	counts := map[store.LabelState]int{}
	for i := range s.shards {
		if err := checkContext(ctx); err != nil {
			return nil, err
		}
		for _, r := range s.shards[i].count(s, counts) {
			open(&r)
		}
	}
	return counts, nil
}

// count counts the records of a shard that are completed, and returns the others.
func (sh *shard) count(s *Store, counts map[store.LabelState]int) (others []store.Record) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	for i := range sh.order {
		switch rec := sh.order[i].rec; {
		case now >= rec.end() || rec.policy.Label == store.ProbeLabel:
		case rec.completed && now >= rec.replayed:
			counts[store.LabelState{Label: rec.policy.Label, State: store.StateExpired}]++
		case rec.completed:
			counts[store.LabelState{Label: rec.policy.Label, State: store.StateCompleted}]++
		default:
			others = append(others, rec.view(now, s.epoch))
		}
	}
	return others
}

// position is the start of the next page: a shard, and an ID in it.
type position struct {
	shard int
	after []byte // nil: at the start
}

// appendShard adds the records of a shard that q selects. It reports full, and the last
// ID that it added, when the page had no room for all of them.
func (s *Store) appendShard(page *store.Page, q *store.Query, at position) (last []byte, full bool) {
	sh := &s.shards[at.shard]
	ids := sh.idsAfter(at.after)
	slices.SortFunc(ids, func(a, b store.ID) int { return bytes.Compare(a[:], b[:]) })
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	for i := range ids {
		page.Scanned++
		rec := sh.records[ids[i]]
		if rec == nil || now >= rec.end() {
			continue
		}
		view := rec.view(now, s.epoch)
		if !q.Selects(&view, s.epoch.Add(now)) {
			continue
		}
		page.Records = append(page.Records, view)
		if len(page.Records) == q.Limit && i < len(ids)-1 {
			return ids[i][:], true
		}
	}
	return nil, false
}

// idsAfter returns the IDs of a shard behind one, in no order.
func (sh *shard) idsAfter(after []byte) []store.ID {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	ids := make([]store.ID, 0, len(sh.records))
	for id := range sh.records {
		if bytes.Compare(id[:], after) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// cursor returns the text of a position. It names the store by the start of its clock.
func (s *Store) cursor(shard int, after []byte) string {
	return fmt.Sprintf("memory-%x-%d-%x", s.epoch.UnixNano(), shard, after)
}

// parseCursor parses the output of cursor.
func (s *Store) parseCursor(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	parts := strings.Split(text, "-")
	if len(parts) == 4 && parts[0] == "memory" && parts[1] == strconv.FormatInt(s.epoch.UnixNano(), 16) {
		shard, err := strconv.Atoi(parts[2])
		after, errAfter := hex.DecodeString(parts[3])
		if err == nil && errAfter == nil && shard >= 0 && shard < shardCount {
			return position{shard, after}, nil
		}
	}
	return position{}, fmt.Errorf("%w: Query.After is not a cursor of this store", store.ErrInvalid)
}
