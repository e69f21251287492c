package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// load is the clients of two processes that ask for operations, most of them more than
// once. They have AtMostOnce, or their effects in the transactions of the attempts: none
// is done twice, and each has one result.
type load struct {
	*testing.T

	transactional bool
	engines       []*reprise.Engine

	mu      sync.Mutex
	runs    map[string]int    // of each operation
	results map[string]string // the first one that a caller got
	kept    map[string]bool   // the record had it, or so its caller was told
	replays int
	refused int
}

// newLoad starts a process over each pool.
func newLoad(t *testing.T, transactional bool, pools ...*sql.DB) *load {
	t.Helper()
	l := &load{T: t, transactional: transactional, runs: map[string]int{}, results: map[string]string{}, kept: map[string]bool{}}
	for _, db := range pools {
		st := newStore(t, db, reprisemysql.Config{})
		lease := time.Minute
		if transactional { // of an attempt whose end is not known
			lease = 2 * time.Second
		}
		engine, err := reprise.New(st, reprise.Config{Lease: lease})
		labtest.Must(t, err)
		l.engines = append(l.engines, engine)
	}
	return l
}

// start starts some clients, and returns the function that stops them.
func (l *load) start() (stop func()) {
	ctx, cancel := context.WithCancel(l.Context())
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				l.ask(ctx, l.draw())
			}
		})
	}
	return func() {
		cancel()
		clients.Wait()
	}
}

// await waits until some more operations are answered.
func (l *load) await() {
	l.Helper()
	more := 100
	if testing.Short() {
		more = 30
	}
	answered := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.results)
	}
	before := answered()
	labtest.Eventually(l, "more operations are answered", func() bool { return answered() >= before+more })
}

// draw returns the key of a new operation, or of one of the last.
func (l *load) draw() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.runs)
	if n > 0 && rand.IntN(2) == 0 {
		n = max(0, n-1-rand.IntN(20))
	}
	key := fmt.Sprintf("key-%d", n)
	l.runs[key] += 0 // it is known from now on
	return key
}

// ask asks a process for an operation. A failure is its client's to repeat.
func (l *load) ask(ctx context.Context, key string) {
	result, err := reprise.Do(ctx, l.engines[rand.IntN(len(l.engines))], reprise.Operation{
		Scope: "load", Key: key, Fingerprint: store.FingerprintOf([]byte(key)), Preset: l.preset(), Transactional: l.transactional, Retention: time.Hour,
	}, nil, func(ctx context.Context) (string, error) {
		l.mu.Lock()
		l.runs[key]++
		value := fmt.Sprintf("%s, run %d", key, l.runs[key])
		l.mu.Unlock()
		if !l.transactional {
			return value, nil
		}
		tx, err := reprisemysql.Tx(ctx)
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO effects (name) VALUES (?)", value)
		}
		return value, err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused++
		return
	}
	if result.Replayed {
		l.replays++
	}
	if first, known := l.results[key]; known && first != result.Value {
		l.Errorf("answered %q, and before %q", result.Value, first)
	}
	l.results[key] = result.Value
	l.kept[key] = l.kept[key] || result.Unrecorded == nil
}

func (l *load) preset() reprise.Preset {
	if l.transactional {
		return reprise.Recoverable
	}
	return reprise.AtMostOnce
}

// judge asks for every operation once more, when all faults are over, and demands that
// the first answers are still the answers. raw is the URL of the database.
func (l *load) judge(raw string) {
	l.Helper()
	for key := range l.runs {
		labtest.Eventually(l, key+" is replayed", func() bool { // sessions that were cut may still end
			before := l.replays
			l.ask(l.Context(), key)
			return l.replays > before || !l.transactional && !l.kept[key]
		})
	}
	for _, engine := range l.engines {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.Context()), 30*time.Second)
		if err := engine.Close(ctx); err != nil {
			l.Error(err)
		}
		cancel()
	}
	effects := l.effects(raw)
	for key, runs := range l.runs {
		switch {
		case !l.transactional && runs > 1:
			l.Errorf("%s ran %d times", key, runs)
		case l.transactional && !slices.Equal(effects[key], []string{l.results[key]}):
			l.Errorf("%s has the effects %q, and is answered %q", key, effects[key], l.results[key])
		}
	}
	l.Logf("%d operations, %d answered, %d replays, %d refused", len(l.runs), len(l.results), l.replays, l.refused)
	if len(l.results) < 20 || l.replays < 20 {
		l.Error("too little happened to show anything")
	}
}

// effects returns the effects of each operation that were committed.
func (l *load) effects(raw string) map[string][]string {
	l.Helper()
	rows, err := mysqlserver.Pool(l, raw, 1).QueryContext(l.Context(), "SELECT SUBSTRING_INDEX(name, ',', 1), name FROM effects")
	if err != nil {
		l.Fatal(err)
	}
	defer rows.Close()
	effects := map[string][]string{}
	for rows.Next() {
		var key, name string
		if err := rows.Scan(&key, &name); err != nil {
			l.Fatal(err)
		}
		effects[key] = append(effects[key], name)
	}
	if err := rows.Err(); err != nil {
		l.Fatal(err)
	}
	return effects
}
