package repriseredis

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// keysPerCount is how many keys the server looks at for one step of a count, during which
// it executes no other command.
const keysPerCount = 500

// Count implements [store.Counter] by a script that scans the primaries one after the
// other, step by step, and by an inspection of each record that it does not find
// completed. The error is ErrUnavailable if a server is replaced meanwhile, or slots of a
// cluster move.
func (s *Store) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	servers, state, err := s.servers(ctx)
	if err != nil {
		return nil, err
	}
	c := counter{lister{store: s, query: &store.Query{}, shown: map[store.ID]bool{}}, open, map[store.LabelState]int{}}
	for _, server := range servers {
		for next := ""; next != "0"; {
			if next, err = c.step(ctx, server, cmp.Or(next, "0")); err != nil {
				return nil, err
			}
		}
	}
	_, after, err := s.servers(ctx)
	if err == nil && after != state {
		err = fail(store.ErrUnavailable, errors.New("a server was replaced, or slots of the cluster moved, during the count; count again"))
	}
	return c.counts, err
}

// counter makes one count.
type counter struct {
	lister

	open   func(*store.Record)
	counts map[store.LabelState]int
}

// step counts the records of the next keys of a server, and returns where the step after
// it begins.
func (c *counter) step(ctx context.Context, node *redis.Client, at string) (next string, err error) {
	script := func(command string, name any) ([]any, error) {
		return node.Do(ctx, command, name, 0, at, c.store.pattern(""), len(c.store.config.Prefix)+keySize, keysPerCount).Slice()
	}
	answer, err := script("evalsha", record.CountScript.Digest)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		answer, err = script("eval", record.CountScript.Source)
	}
	if err != nil {
		return "", readError(err)
	}
	next, counts, keys, ok := record.ParseCount(answer)
	if !ok {
		return "", errUnexpected
	}
	for key, n := range counts {
		if key.Label != store.ProbeLabel {
			c.counts[key] += n
		}
	}
	others, err := c.inspect(ctx, c.ids(keys, nil))
	for i := range others {
		if r := &others[i]; r.State.WasCompleted() {
			c.counts[store.LabelState{Label: r.Label, State: r.State}]++
		} else {
			c.open(r)
		}
	}
	return next, err
}
