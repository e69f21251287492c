package transactional

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/table/tabletest"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

func TestServerLimitsTransactionsFrom17(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"17.2 (Debian 17.2-1.pgdg120+1)": true, "17": true, "18beta1": true, "100.1": true,
		"16.9": false, "15.4 (Debian 15.4-1)": false, "": false, "devel": false,
	} {
		if got := limitsTransactions(version); got != want {
			t.Errorf("%q limits transactions: %t", version, got)
		}
	}
}

// TestClaimAdaptsOnce: to a server that does not know whether its clients are there, and
// to a pooler that does not keep statements; and it is sent again only where something
// changed.
func TestClaimAdaptsOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := &Store{table: tabletest.New(t, new(sql.DB), table.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})}
	setting, gone := pgtest.ServerError("ERROR", wire.CodeInvalidSetting), pgtest.ServerError("ERROR", wire.CodeNoStatement)
	if !s.adapts(t.Context(), setting, true) || s.adapts(t.Context(), setting, true) {
		t.Error("the look after clients is not left out, or it is left out twice")
	}
	if s.adapts(t.Context(), gone, false) || s.table.Sender.Unprepared.Load() {
		t.Error("what was not prepared is given up")
	}
	if !s.adapts(t.Context(), gone, true) || !s.table.Sender.Unprepared.Load() {
		t.Error("it goes on with statements that are not there")
	}
	s.table.Sender.GiveUp(t.Context(), gone)
	if n := strings.Count(log.String(), "without keeping prepared statements"); n != 1 {
		t.Errorf("the log says %d times that statements are not prepared", n)
	}
	if s.adapts(t.Context(), pgtest.ServerError("ERROR", wire.CodeDiskFull), true) || s.adapts(t.Context(), errors.New("EOF"), true) {
		t.Error("it adapts to what it can do nothing about")
	}
}
