package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// steps are the statements of one round trip in the transaction of an attempt, with what
// became of them.
type steps struct {
	calls []call
	done  int               // how many succeeded
	tag   pgconn.CommandTag // of the last one that did
}

// add appends a statement with its parameters. read gets the rows of its answer, and may
// be nil.
func (b *steps) add(st *statement, read func(*row), values ...[]byte) {
	if read == nil {
		read = func(*row) {}
	}
	b.calls = append(b.calls, call{statement: st, values: values, read: read})
}

// send sends the steps on conn.
func (b *steps) send(ctx context.Context, t *records, conn *pgx.Conn, prepared bool) error {
	return t.sendAll(ctx, conn, prepared, b.calls, func(tag pgconn.CommandTag) {
		b.done++
		b.tag = tag
	})
}

// prepareAttempt prepares, once in each session, what almost every attempt needs, so that
// no transaction waits for it.
func (s *TransactionalStore) prepareAttempt(ctx context.Context, conn *pgx.Conn) error {
	for _, st := range []*statement{s.sql.open, s.sql.seen, s.sql.keep, s.sql.begin, s.sql.commit} {
		if _, err := prepare(ctx, conn, st); err != nil {
			return err
		}
	}
	return nil
}
