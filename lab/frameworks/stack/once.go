package stack

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// Case is a stack that a bug report or a user's service has: layers inside of the
// middleware and a handler, whose response a client gets as a complete message.
type Case[M, H any] struct {
	Layers  []M
	Handler H
}

// RunOnce sends a request without our middleware, and one with a key and its retry with
// it, to each case. The first response has to be that of the same stack without our
// middleware and the second its replay, of one run, with both presets over a leased
// store; and over a transactional one the effect of that run has to be committed. serve
// serves a case at / behind our middleware, or without it if guard is nil; its handler
// calls ran with the context of its request first.
func RunOnce[M, H any](t *testing.T, cases map[string]Case[M, H], serve func(t *testing.T, guard *protocol.Guard, c Case[M, H], ran func(context.Context)) (addr string)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := client{t: t, addr: serve(t, nil, cases[name], func(context.Context) {})}
			want := bare.send("gzip", "k")
			if want.err != nil {
				t.Fatalf("without the middleware: %v", want.err)
			}
			for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
				once(t, preset.String(), want, func(ran func(context.Context)) string {
					return serve(t, guardOver(t, memstore.New(), preset), cases[name], ran)
				})
			}
			file := sqlitefile.New(t)
			effects := newEffects(t, file)
			once(t, "transactional", want, func(ran func(context.Context)) string {
				return serve(t, guardOver(t, sqlitefile.Transactional(t, file), reprise.Recoverable), cases[name], func(ctx context.Context) {
					ran(ctx)
					effects.add(t, ctx)
				})
			})
			if n := effects.count(t); n != 1 {
				t.Errorf("transactional: %d effects are committed, want 1", n)
			}
		})
	}
}

// once sends a request and its retry.
func once(t *testing.T, name string, want answer, serve func(ran func(context.Context)) string) {
	t.Helper()
	var runs atomic.Int64
	c := client{t: t, addr: serve(func(context.Context) { runs.Add(1) })}
	first, again := c.send("gzip", "k"), c.send("gzip", "k")
	for field, text := range differences(first, want) {
		t.Errorf("%s: the first answer differs from that without the middleware in %s: %s", name, field, text)
	}
	for field, text := range differences(again, first) {
		if field == "Trailer" {
			continue // it is about how a response was sent (R14)
		}
		t.Errorf("%s: the retry differs from the first answer in %s: %s", name, field, text)
	}
	if n := runs.Load(); n != 1 || first.replayed || !again.replayed {
		t.Errorf("%s: %d runs, replayed %v and then %v; want one run and its replay", name, n, first.replayed, again.replayed)
	}
}

// effects is a table of the effects of handlers.
type effects struct{ db *sql.DB }

func newEffects(t *testing.T, file string) effects {
	t.Helper()
	db, err := serve.OpenFile(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE effects (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	return effects{db}
}

// add adds a row in the transaction of the run.
func (e effects) add(t *testing.T, ctx context.Context) {
	tx, ok := reprisesqlite.Tx(ctx)
	if !ok {
		t.Error("the handler has no transaction")
		return
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (1)"); err != nil {
		t.Error(err)
	}
}

func (e effects) count(t *testing.T) (n int) {
	t.Helper()
	if err := e.db.QueryRowContext(t.Context(), "SELECT count(*) FROM effects").Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}
