package handlertx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// steps are the statements of one round trip, with their results.
type steps struct {
	calls []wire.Call
	done  int               // how many succeeded
	tag   pgconn.CommandTag // of the last one that did
}

// add appends a statement with its parameters. read gets the rows of its answer, and may
// be nil.
func (b *steps) add(st *wire.Statement, read func(*wire.Row), values ...[]byte) {
	if read == nil {
		read = func(*wire.Row) {}
	}
	b.calls = append(b.calls, st.Call(read, values...))
}

// send sends the steps on conn.
func (b *steps) send(ctx context.Context, conn *pgx.Conn, prepared bool) error {
	return wire.SendAll(ctx, conn, prepared, b.calls, func(tag pgconn.CommandTag) {
		b.done++
		b.tag = tag
	})
}
