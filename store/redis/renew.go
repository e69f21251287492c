package repriseredis

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// Renew implements [store.Store] in one pipeline, or one for each node of a cluster. An
// entry that failed while others succeeded answers [store.RenewBusy], so that a node that
// is down costs no leases on other nodes. When all entries failed, Renew returns the
// error of the first one.
func (s *Store) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			return nil, err
		}
	}
	if len(rs) == 0 {
		return nil, nil
	}

	commands := make([]command, len(rs))
	open := make([]*command, len(rs))
	for i := range rs {
		c := &commands[i]
		c.script = record.RenewScript
		c.fixed = record.AppendOwned(c.buf[:0], rs[i].Owner, rs[i].Lease)
		s.call(c, rs[i].ID, &c.fixed)
		open[i] = c
	}
	s.run(ctx, open)

	answers := make([]store.RenewStatus, len(rs))
	failed := 0
	for i := range commands {
		answers[i] = commands[i].renewed()
		if answers[i] == store.RenewBusy {
			failed++
		}
	}
	if failed == len(rs) {
		return nil, commands[0].err
	}
	return answers, nil
}

// renewed reads the answer of renew.lua.
func (c *command) renewed() store.RenewStatus {
	switch {
	case errors.Is(c.err, store.ErrLeaseLost):
		return store.RenewLost
	case c.err != nil:
		return store.RenewBusy
	case c.reply()[0] == record.TagFinished:
		return store.RenewCompleted
	default:
		return store.Renewed
	}
}
