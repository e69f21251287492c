package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// childEnv has the orders of a process that the tests start and that kills itself.
const childEnv = "REPRISE_SQLITE_CHILD"

// orders are the work of a child: one operation, with one effect.
type orders struct {
	Driver, File, Key string
	Transactional     bool
	Point             string // at which it kills itself; empty: nowhere
}

// unfinished is the exit code of a child that may have had an effect, and whose operation
// is not known to be done.
const unfinished = 3

// child runs its orders, and answers with the exit code 0 where the operation is done.
func child(text string) int {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	ran, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	switch {
	case err == nil:
		return 0
	case ran:
		return unfinished
	}
	return 1
}

// run reports whether the operation's function ran, and why it is not known to be done.
func (o *orders) run() (ran bool, err error) {
	ctx := context.Background()
	db, err := sql.Open(o.Driver, "file:"+o.File+settingsOf(o.Driver))
	if err != nil {
		return false, err
	}
	defer db.Close()
	st, err := reprisesqlite.New(db, reprisesqlite.Config{})
	if err != nil {
		return false, err
	}
	mortal := &labtest.Mortal{TransactorStore: st, Point: o.Point}
	engine, err := reprise.New(mortal, reprise.Config{Lease: time.Second})
	if err != nil {
		return false, err
	}
	op := reprise.Operation{Scope: "kills", Key: o.Key, Transactional: o.Transactional}
	done, err := reprise.Do(ctx, engine, op, nil, func(ctx context.Context) (string, error) {
		ran = true
		exec := db.ExecContext
		if o.Transactional {
			tx, err := reprisesqlite.Tx(ctx)
			if err != nil {
				return "", err
			}
			exec = tx.ExecContext
		}
		for range 2 { // an effect in two statements
			_, err := exec(ctx, "INSERT INTO effects (name) VALUES (?)", o.Key)
			for !o.Transactional && err != nil && ctx.Err() == nil { // another process has the file, or repairs it after a death
				_, err = exec(ctx, "INSERT INTO effects (name) VALUES (?)", o.Key)
			}
			if err != nil {
				return "", err
			}
			mortal.Pass("mid effect")
		}
		return "done", nil
	})
	if err == nil {
		err = done.Unrecorded
	}
	return ran, err
}

// errUnfinished is that of a child that answers unfinished.
var errUnfinished = errors.New("it ran, and is not known to be done")

// start runs a child to its end, and reports whether it was killed.
func (o orders) start(tb testing.TB) (killed bool, err error) {
	tb.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	command := exec.CommandContext(tb.Context(), os.Args[0]) //nolint:gosec // this test
	command.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return true, nil
		}
		err = errors.New(strings.TrimSpace(string(out)))
		if exit.ExitCode() == unfinished {
			err = fmt.Errorf("%w: %w", errUnfinished, err)
		}
		return false, err
	}
	return false, err
}

// TestKilledProcessesLeaveEachEffectOnce: processes that share a file die by SIGKILL at
// every point, and their operations are run again. In the transactional store the effect
// of an operation is there once; in the leased store there are as many as attempts that
// got so far, and the last of them is complete.
func TestKilledProcessesLeaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	kills := 200
	if testing.Short() {
		kills = 16
	}
	onDrivers(t, func(t *testing.T, d driver) {
		for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file := d.withEffects(t)
				var operations sync.WaitGroup
				failed := make([]int, kills)
				turns := make(chan struct{}, 4) // processes at once
				for n := range kills {
					o := orders{Driver: d.name, File: file, Key: fmt.Sprintf("key-%d", n), Transactional: transactional, Point: labtest.Points[n%len(labtest.Points)]}
					turns <- struct{}{}
					operations.Go(func() {
						defer func() { <-turns }()
						failed[n] = o.untilDone(t)
					})
				}
				operations.Wait()
				d.wantEach(t, file, failed, transactional)
			})
		}
	})
}

// untilDone runs an operation to its death, and then until it is done. It returns how
// many of its attempts lived, but failed.
func (o orders) untilDone(t *testing.T) (failed int) {
	t.Helper()
	point, deadline := o.Point, time.Now().Add(time.Minute)
	for {
		switch killed, err := o.start(t); {
		case killed && o.Point == "":
			t.Errorf("%s: killed without a point", o.Key)
			return failed
		case killed:
			o.Point = ""
		case err == nil && (o.Point == "" || failed > 0): // or it was recorded
			return failed
		case err == nil:
			t.Errorf("%s: not killed %s", o.Key, point)
			return failed
		case time.Now().After(deadline): // else: another process has the file or the lease
			t.Errorf("%s, killed %s: %v", o.Key, point, err)
			return failed
		case errors.Is(err, errUnfinished):
			failed++
		}
	}
}

// wantEach compares the effects with those that each point leaves. In the leased store
// each attempt that failed may have left two more.
func (d driver) wantEach(t *testing.T, file string, failed []int, transactional bool) {
	t.Helper()
	db, kills := d.open(t, file), len(failed)
	for n := range kills {
		want, more := 2, 2*failed[n]
		if transactional {
			more = 0
		}
		if point := labtest.Points[n%len(labtest.Points)]; !transactional && point == "mid effect" {
			want = 3
		} else if !transactional && point == "before complete" {
			want = 4
		}
		var got, completed int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM effects WHERE name = ?", fmt.Sprintf("key-%d", n)).Scan(&got)
		if err != nil || got < want || got > want+more {
			t.Errorf("killed %s: %d effects, %v; want %d to %d", labtest.Points[n%len(labtest.Points)], got, err, want, want+more)
		}
		if n > 0 {
			continue
		}
		err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM reprise_records WHERE state = 2").Scan(&completed)
		if err != nil || completed != kills {
			t.Errorf("%d completed records, %v; want %d", completed, err, kills)
		}
	}
	t.Logf("%d processes killed over %s", kills, filepath.Base(file))
}
