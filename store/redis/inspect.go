package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// scanCount is how many keys the server looks at for one step of a listing.
const scanCount = 512

// errChangedBefore is the cause of [reprise.ErrUnknown] where an earlier try of a call
// may have made the change that its repetition finds.
var errChangedBefore = errors.New("the record has changed, maybe by this call, whose first reply was lost")

// Inspect implements [reprise.Inspector] in one command, at the primary.
func (s *Store) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	c := &command{script: inspectScript}
	c.fixed = append(c.buf[:0], "payload"...)
	s.call(ctx, c, id, &c.fixed)
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return reprise.Record{}, err
	}
	if answer[0] == tagNone {
		return reprise.Record{}, reprise.ErrNotFound
	}
	r, _, ok := parseView(id, answer)
	if !ok {
		return reprise.Record{}, fail(reprise.ErrUnknown, errUnexpected)
	}
	return r, nil
}

// List implements [reprise.Inspector] by scanning every primary, which looks at all keys
// of the server, also at those of others. Records that cannot be read are left out.
func (s *Store) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	if err := q.Validate(); err != nil {
		return reprise.Page{}, err
	}
	if q.After != "" {
		return reprise.Page{}, fmt.Errorf("%w: Query.After is not a cursor of this store", reprise.ErrInvalid)
	}
	nodes, err := s.primaries(ctx)
	if err != nil {
		return reprise.Page{}, err
	}
	var page reprise.Page
	known := make(map[reprise.ID]bool) // a scan may show a key twice
	for _, node := range nodes {
		var cursor uint64
		for {
			keys, next, err := node.Scan(ctx, cursor, s.pattern(), scanCount).Result()
			if err != nil {
				return reprise.Page{}, fail(classify(err).class, err)
			}
			records, err := s.inspectAll(ctx, s.unknownIDs(keys, known))
			if err != nil {
				return reprise.Page{}, err
			}
			page.Scanned += len(keys)
			for i := range records {
				if q.Selects(&records[i], time.Now()) {
					page.Records = append(page.Records, records[i])
				}
			}
			if len(page.Records) >= q.Limit {
				page.Records = page.Records[:q.Limit]
				return page, nil
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return page, nil
}

// unknownIDs returns the IDs of those keys that are keys of records and not known, and
// makes them known.
func (s *Store) unknownIDs(keys []string, known map[reprise.ID]bool) []reprise.ID {
	var ids []reprise.ID
	for _, key := range keys {
		digest, ok := strings.CutPrefix(key, s.prefix)
		if !ok || len(digest) != len(reprise.ID{}) {
			continue
		}
		if id := reprise.ID([]byte(digest)); !known[id] {
			known[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// inspectAll looks at several records in one pipeline, without their payloads. It leaves
// out those that are gone or cannot be read.
func (s *Store) inspectAll(ctx context.Context, ids []reprise.ID) ([]reprise.Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	commands := make([]command, len(ids))
	open := make([]*command, len(ids))
	for i, id := range ids {
		c := &commands[i]
		c.script = inspectScript
		c.fixed = append(c.buf[:0], "record"...)
		s.call(ctx, c, id, &c.fixed)
		open[i] = c
	}
	s.run(ctx, open)

	var records []reprise.Record
	for i := range commands {
		switch err := commands[i].err; {
		case errors.Is(err, reprise.ErrCorrupt):
			continue
		case err != nil:
			return nil, err
		}
		if r, _, ok := parseView(ids[i], commands[i].reply()); ok {
			records = append(records, r)
		}
	}
	return records, nil
}

// Resolve implements [reprise.Inspector] in one command. The record that it completes has
// no owner: the last attempt, should it still come back, learns that it lost. Where a
// reply was lost and the repetition finds the record changed, this call may have changed
// it, and the error is ErrUnknown: inspect the record again.
func (s *Store) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: resolveScript, wait: true, payload: r.Payload, span: completedSpan(r.Retention)}
	c.fixed = appendResolution(c.buf[:0], &r)
	s.call(ctx, c, id, &c.fixed, &c.span, &c.payload)
	answer, err := s.runOne(ctx, c)
	switch {
	case err != nil:
		return err
	case answer[0] == tagNone && c.uncertain:
		return fail(reprise.ErrUnknown, errChangedBefore)
	case answer[0] == tagNone:
		return reprise.ErrRecordChanged
	case answer[0] != tagChanged:
		return fail(reprise.ErrUnknown, errUnexpected)
	}
	return nil
}

// pattern returns the glob that the keys of records match.
func (s *Store) pattern() string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.prefix) + "*"
}
