package mysql

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// child runs the orders of a process that a test started.
func child(ctx context.Context, o *labtest.Orders) error {
	db, err := serve.OpenMySQL(o.URL, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	st, err := reprisemysql.New(db, reprisemysql.Config{})
	if err != nil {
		return err
	}
	return o.Run(ctx, &labtest.SQLHandlers{DB: db, Store: st, Tx: reprisemysql.Tx})
}

// TestKilledProcessesAndServersLeaveEachEffectOnce: processes die by SIGKILL at every
// point, and so does the server while they run. The effect of an operation that is
// transactional is there once.
func TestKilledProcessesAndServersLeaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	clients, crashes := 250, 50
	if testing.Short() {
		clients, crashes = 8, 2
	}
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.StartMariaDB(t)
			raw := withEffects(t, server)
			h := labtest.SQLHandlers{DB: mysqlserver.Pool(t, raw, 1)}
			h.Kills(t, labtest.Orders{URL: raw, Transactional: transactional}, clients, func(done func() int) {
				for n := range crashes { // spread over the operations
					for done() < n*clients/crashes {
						time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
					}
					server.Restart(t)
				}
			})
		})
	}
}
