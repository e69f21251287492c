package labtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
)

// Points are where a [Mortal] process dies: its store knows all but the second, which
// [Orders.Run] passes.
var Points = []string{"after claim", "mid effect", "before complete", "after complete"}

// Mortal is a store in a database of SQL, of a process that kills itself at a point of an
// attempt.
type Mortal struct {
	TransactorStore

	Point string // empty: nowhere
}

// Pass kills the process if it dies at this point.
func (m *Mortal) Pass(point string) {
	if m.Point == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// Claim implements [store.Store].
func (m *Mortal) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	got, err := m.TransactorStore.Claim(ctx, r)
	if err == nil && got.Outcome == store.Claimed {
		m.Pass("after claim")
	}
	return got, err
}

// Complete implements [store.Store].
func (m *Mortal) Complete(ctx context.Context, r store.CompleteRequest) error {
	return m.complete(ctx, r, m.TransactorStore.Complete)
}

func (m *Mortal) complete(ctx context.Context, r store.CompleteRequest, complete func(context.Context, store.CompleteRequest) error) error {
	m.Pass("before complete")
	err := complete(ctx, r)
	if err == nil {
		m.Pass("after complete")
	}
	return err
}

// Transaction implements [store.Transactor].
func (m *Mortal) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	ctx, tx := m.TransactorStore.Transaction(ctx, id, owner)
	return ctx, &mortalTx{tx, m}
}

// mortalTx is the transaction of an attempt of a Mortal store.
type mortalTx struct {
	store.Transaction

	store *Mortal
}

// Commit implements [store.Transaction].
func (t *mortalTx) Commit(ctx context.Context, r store.CompleteRequest) error {
	return t.store.complete(ctx, r, t.Transaction.Commit)
}

// Orders are the work of a process that a test starts and that kills itself: an operation
// with an effect of two rows, in the table effects.
type Orders struct {
	Driver, URL, Key string
	Transactional    bool
	Point            string // at which it kills itself; empty: nowhere
}

// ordersEnv has the orders of a process.
const ordersEnv = "REPRISE_TEST_ORDERS"

// Child runs the orders of this process and ends it, if it has any. Its exit code is 0
// where the operation is done.
func Child(run func(context.Context, *Orders) error) {
	text := os.Getenv(ordersEnv)
	if text == "" {
		return
	}
	var o Orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = run(context.Background(), &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run executes the operation.
func (o *Orders) Run(ctx context.Context, h *SQLHandlers) error {
	mortal := &Mortal{TransactorStore: h.Store, Point: o.Point}
	engine, err := reprise.New(mortal, reprise.Config{Lease: time.Second})
	if err != nil {
		return err
	}
	op := reprise.Operation{Scope: "kills", Key: o.Key, Transactional: o.Transactional}
	done, err := job.Do(ctx, engine, op, nil, func(ctx context.Context) (string, error) {
		var on interface {
			ExecContext(context.Context, string, ...any) (sql.Result, error)
		} = h.DB
		if o.Transactional {
			tx, err := h.Tx(ctx)
			if err != nil {
				return "", err
			}
			on = tx
		}
		for range 2 {
			if _, err := on.ExecContext(ctx, "INSERT INTO effects (name) VALUES (?)", o.Key); err != nil {
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

// Kills runs operations of a kind in processes, a few at once, each of which dies at a
// point, and is run again until it is done. Meanwhile it calls during, if any, with a
// function that says how many are done. Then it demands two effects of each operation, or
// more of a policy that is not transactional, and a completed record.
func (h *SQLHandlers) Kills(t *testing.T, kind Orders, operations int, during func(done func() int)) {
	t.Helper()
	var (
		all          sync.WaitGroup
		killed, done atomic.Int64
	)
	orders, turns := make([]Orders, operations), make(chan struct{}, 4) // processes at once
	for n := range orders {
		orders[n] = kind
		orders[n].Key, orders[n].Point = fmt.Sprintf("key-%d", n), Points[n%len(Points)]
		all.Go(func() {
			turns <- struct{}{}
			killed.Add(int64(orders[n].untilDone(t)))
			done.Add(1)
			<-turns
		})
	}
	if during != nil {
		during(func() int { return int(done.Load()) })
	}
	all.Wait()
	for _, o := range orders {
		if got := h.count(t, "SELECT COUNT(*) FROM effects WHERE name = ?", o.Key); got < 2 || o.Transactional && got != 2 {
			t.Errorf("%s, killed %s: %d effects", o.Key, o.Point, got)
		}
	}
	if n := h.count(t, "SELECT COUNT(*) FROM reprise_records WHERE state = 2"); n != operations {
		t.Errorf("%d completed records of %d", n, operations)
	}
	if n := killed.Load(); int(n) < operations*3/4 {
		t.Errorf("%d processes of %d were killed", n, operations)
	}
}

// untilDone runs the operation in processes until one of them ends it, of which the first
// that gets to its point dies there. It returns how many were killed.
func (o Orders) untilDone(t *testing.T) (killed int) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		text, err := json.Marshal(o)
		if err != nil {
			t.Error(err)
			return killed
		}
		command := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
		command.Env = append(os.Environ(), ordersEnv+"="+string(text))
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
		case time.Now().After(deadline): // else: the database is away, or the lease of a dead process lives
			t.Errorf("%s: %v: %s", o.Key, err, strings.TrimSpace(string(out)))
			return killed
		}
	}
}
