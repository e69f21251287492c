package transactional

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestUnusedTransactionIsReported: where a handler had it and did not ask for it, by
// either function.
func TestUnusedTransactionIsReported(t *testing.T) {
	t.Parallel()
	tx := func(ctx context.Context) { Tx(ctx) }
	sqlTx := func(ctx context.Context) { SQLTx(ctx) }
	for name, test := range map[string]struct {
		overSQL bool
		handler func(context.Context) // nil where there is none
		want    string                // in the log; empty is no line
	}{
		"no handler":               {false, nil, ""},
		"pgx, used":                {false, tx, ""},
		"pgx, asked for the other": {false, sqlTx, "reprisepg.Tx(ctx)"},
		"sql, used":                {true, sqlTx, ""},
		"sql, asked for the other": {true, tx, "reprisepg.SQLTx(ctx)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			s := &Store{
				table:    &table.Table{Options: table.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}},
				attempts: map[store.Owner]*attempt{},
			}
			a := &attempt{policy: store.Policy{Label: "orders"}, session: &wire.Session{Pool: new(pgxpool.Conn)}}
			if test.overSQL {
				a.session.Pool, a.sqlTx = nil, new(sql.Tx)
			}
			s.attempts[a.owner] = a
			if test.handler != nil {
				test.handler(s.Bind(t.Context(), a.id, a.owner))
			}
			s.reportUnused(t.Context(), a)
			line := log.String()
			if (line != "") != (test.want != "") || !strings.Contains(line, test.want) {
				t.Errorf("the log has %q, want %q", line, test.want)
			}
			if line != "" && (!strings.Contains(line, "attempts=1") || !strings.Contains(line, "label=orders")) {
				t.Errorf("the log has %q", line)
			}
		})
	}
}
