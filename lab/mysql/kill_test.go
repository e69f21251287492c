package mysql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// childEnv has the orders of a process that the tests start and that kills itself.
const childEnv = "REPRISE_MYSQL_CHILD"

// orders are the work of a child: one operation, with an effect of two rows.
type orders struct {
	URL, Key      string
	Transactional bool
	Point         string // at which it kills itself; empty: nowhere
}

// child runs its orders, and answers with the exit code 0 where the operation is done.
func child(text string) int {
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o *orders) run(ctx context.Context) error {
	db, err := serve.OpenMySQL(o.URL, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	st, err := reprisemysql.New(db, reprisemysql.Config{})
	if err != nil {
		return err
	}
	mortal := &labtest.Mortal{TransactorStore: st, Point: o.Point}
	engine, err := reprise.New(mortal, reprise.Config{Lease: time.Second})
	if err != nil {
		return err
	}
	done, err := reprise.Do(ctx, engine, reprise.Operation{Scope: "kills", Key: o.Key, Transactional: o.Transactional}, nil, func(ctx context.Context) (string, error) {
		exec := db.ExecContext
		if o.Transactional {
			tx, err := reprisemysql.Tx(ctx)
			if err != nil {
				return "", err
			}
			exec = tx.ExecContext
		}
		for range 2 {
			if _, err := exec(ctx, "INSERT INTO effects (name) VALUES (?)", o.Key); err != nil {
				return "", err
			}
			mortal.Pass("mid effect")
		}
		return "done", nil
	})
	if err != nil {
		return err
	}
	return done.Unrecorded
}

// untilDone runs an operation in processes until one of them ends it, of which the first
// that gets to its point dies there. It returns how many were killed.
func (o orders) untilDone(t *testing.T) (killed int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		text, err := json.Marshal(o)
		if err != nil {
			t.Error(err)
			return killed
		}
		command := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
		command.Env = append(os.Environ(), childEnv+"="+string(text))
		out, err := command.CombinedOutput()
		status := syscall.WaitStatus(0)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			status, _ = exit.Sys().(syscall.WaitStatus)
		}
		switch {
		case status.Signaled():
			o.Point = ""
			killed++
		case err == nil:
			return killed
		case time.Now().After(deadline): // else: the server is away, or the lease of a dead process lives
			t.Errorf("%s: %v: %s", o.Key, err, strings.TrimSpace(string(out)))
			return killed
		}
	}
}

// TestKilledProcessesAndServersLeaveEachEffectOnce: processes die by SIGKILL at every
// point, and so does the server while they run. In the transactional store the effect of
// an operation is there once.
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
			var operations sync.WaitGroup
			turns, done := make(chan struct{}, 3), make(chan struct{}) // processes at once
			var (
				mu     sync.Mutex
				killed int
				ended  int
			)
			go func() {
				defer close(done)
				for n := range clients {
					o := orders{URL: raw, Key: fmt.Sprintf("key-%d", n), Transactional: transactional, Point: labtest.Points[n%len(labtest.Points)]}
					turns <- struct{}{}
					operations.Go(func() {
						defer func() { <-turns }()
						deaths := o.untilDone(t)
						mu.Lock()
						defer mu.Unlock()
						killed, ended = killed+deaths, ended+1
					})
				}
				operations.Wait()
			}()
			for n := range crashes { // spread over the operations
				for running := true; running; {
					mu.Lock()
					running = ended < n*clients/crashes
					mu.Unlock()
					time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
				}
				server.Restart(t)
			}
			<-done
			for n := range clients {
				got := count(t, raw, "SELECT COUNT(*) FROM effects WHERE name = ?", fmt.Sprintf("key-%d", n))
				if got < 2 || transactional && got != 2 {
					t.Errorf("key-%d, killed %s: %d effects", n, labtest.Points[n%len(labtest.Points)], got)
				}
			}
			if n := count(t, raw, "SELECT COUNT(*) FROM reprise_records WHERE state = 2"); n != clients {
				t.Errorf("%d completed records of %d", n, clients)
			}
			t.Logf("%d processes and %d servers killed", killed, crashes)
		})
	}
}
