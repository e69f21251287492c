package mysql

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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
			var (
				operations    sync.WaitGroup
				killed, ended atomic.Int64
			)
			turns, done := make(chan struct{}, 3), make(chan struct{}) // processes at once
			orders := make([]labtest.Orders, clients)
			for n := range orders {
				orders[n] = labtest.Orders{URL: raw, Key: fmt.Sprintf("key-%d", n), Transactional: transactional, Point: labtest.Points[n%len(labtest.Points)]}
			}
			go func() {
				defer close(done)
				for _, o := range orders {
					turns <- struct{}{}
					operations.Go(func() {
						killed.Add(int64(o.UntilDone(t)))
						ended.Add(1)
						<-turns
					})
				}
				operations.Wait()
			}()
			for n := range crashes { // spread over the operations
				for int(ended.Load()) < n*clients/crashes {
					time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
				}
				server.Restart(t)
			}
			<-done
			h := labtest.SQLHandlers{DB: mysqlserver.Pool(t, raw, 1)}
			h.WantEach(t, orders)
			if n := killed.Load(); int(n) < clients*3/4 {
				t.Errorf("%d processes of %d were killed", n, clients)
			}
		})
	}
}
