package reprisepg

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestWhereCallsAreCombined: those beyond the eighth, and beyond half of a small pool, of
// which one may always be sent alone; none where the application wants that, or where it
// chose the simple protocol.
func TestWhereCallsAreCombined(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config Config
		conns  int // 0: no limit
		want   int64
	}{
		{Config{}, 0, 8},
		{Config{}, 1, 1},
		{Config{}, 4, 2},
		{Config{}, 16, 8},
		{Config{}, 100, 8},
		{Config{ExecMode: pgx.QueryExecModeExec}, 100, 8},
		{Config{NoCombining: true}, 100, 0},
		{Config{ExecMode: pgx.QueryExecModeSimpleProtocol}, 100, 0},
	} {
		db := sql.OpenDB(&refusing{})
		db.SetMaxOpenConns(test.conns)
		store, err := NewSQL(db, test.config)
		if err != nil {
			t.Fatal(err)
		}
		if combined := store.queue != nil; combined != (test.want > 0) || store.few != test.want {
			t.Errorf("%+v over %d connections: combined %t, beyond %d", test.config, test.conns, combined, store.few)
		}
		_ = db.Close()
	}
}
