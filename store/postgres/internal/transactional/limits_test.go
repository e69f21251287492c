package transactional

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
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

// TestClaimAdaptsOnce: to a server that does not know whether its clients are there; and
// it is sent again only where something changed.
func TestClaimAdaptsOnce(t *testing.T) {
	t.Parallel()
	s := new(Store)
	setting := pgtest.ServerError("ERROR", wire.CodeInvalidSetting)
	if !s.adapts(setting) || s.adapts(setting) {
		t.Error("the look after clients is not left out, or it is left out twice")
	}
	if s.adapts(pgtest.ServerError("ERROR", wire.CodeDiskFull)) || s.adapts(errors.New("EOF")) {
		t.Error("it adapts to what it can do nothing about")
	}
}
