package labtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
)

// Load is the clients of two processes that ask for operations, most of them more than
// once. They have AtMostOnce, or their effects in the transactions of the attempts: none
// is done twice, and each has one result.
type Load struct {
	*testing.T

	write   func(ctx context.Context, name string) error // an effect in the attempt's transaction; nil: there is none
	engines []*reprise.Engine

	mu      sync.Mutex
	runs    map[string]int    // of each operation
	results map[string]string // the first one that a caller got
	kept    map[string]bool   // the record had it, or so its caller was told
	replays int
	refused int
}

// NewLoad starts a process over each store. Write writes an effect in the transaction of
// an attempt; where it is nil the operations have AtMostOnce.
func NewLoad(t *testing.T, write func(ctx context.Context, name string) error, stores ...store.Store) *Load {
	t.Helper()
	l := &Load{T: t, write: write, runs: map[string]int{}, results: map[string]string{}, kept: map[string]bool{}}
	lease := time.Minute
	if write != nil { // of an attempt whose end is not known
		lease = 2 * time.Second
	}
	for _, st := range stores {
		engine, err := reprise.New(st, reprise.Config{Lease: lease})
		Must(t, err)
		l.engines = append(l.engines, engine)
	}
	return l
}

// Start starts some clients, and returns the function that stops them once some more
// operations are answered, which shows that nothing of the faults before stays.
func (l *Load) Start() (stop func()) {
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
		l.Helper()
		l.Await()
		cancel()
		clients.Wait()
	}
}

// Await waits until some more operations are answered.
func (l *Load) Await() {
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
	Eventually(l, "more operations are answered", func() bool { return answered() >= before+more })
}

// draw returns the key of a new operation, or of one of the last.
func (l *Load) draw() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.runs)
	if n > 0 && rand.IntN(2) == 0 { //nolint:gosec // no secret
		n = max(0, n-1-rand.IntN(20)) //nolint:gosec // likewise
	}
	key := fmt.Sprintf("key-%d", n)
	l.runs[key] += 0 // it is known from now on
	return key
}

// ask asks a process for an operation. A failure is its client's to repeat.
func (l *Load) ask(ctx context.Context, key string) {
	preset := reprise.AtMostOnce
	if l.write != nil {
		preset = reprise.Recoverable
	}
	engine := l.engines[rand.IntN(len(l.engines))] //nolint:gosec // likewise
	result, err := job.Do(ctx, engine, reprise.Operation{
		Scope: "load", Key: key, Fingerprint: store.FingerprintOf([]byte(key)), Preset: preset, Transactional: l.write != nil, Retention: time.Hour,
	}, nil, func(ctx context.Context) (string, error) {
		l.mu.Lock()
		l.runs[key]++
		value := fmt.Sprintf("%s, run %d", key, l.runs[key])
		l.mu.Unlock()
		if l.write == nil {
			return value, nil
		}
		return value, l.write(ctx, value)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		for _, never := range []error{store.ErrCorrupt, store.ErrInvalid, store.ErrMisconfigured} {
			if errors.Is(err, never) {
				l.Errorf("%s: %v", key, err)
			}
		}
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

// Judge asks for every operation once more, when all faults are over, and demands that
// the first answers are still the answers, and that the effects in db are those.
func (l *Load) Judge(db *sql.DB) {
	l.Helper()
	for key := range l.runs {
		Eventually(l, key+" is replayed", func() bool { // sessions that were cut may still end
			before := l.replays
			l.ask(l.Context(), key)
			return l.replays > before || l.write == nil && !l.kept[key]
		})
	}
	for _, engine := range l.engines {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.Context()), 30*time.Second)
		if err := engine.Close(ctx); err != nil {
			l.Error(err)
		}
		cancel()
	}
	effects := l.effects(db)
	for key, runs := range l.runs {
		switch {
		case l.write == nil && runs > 1:
			l.Errorf("%s ran %d times", key, runs)
		case l.write != nil && !slices.Equal(effects[key], []string{l.results[key]}):
			l.Errorf("%s has the effects %q, and is answered %q", key, effects[key], l.results[key])
		}
	}
	l.Logf("%d operations, %d answered, %d replays, %d refused", len(l.runs), len(l.results), l.replays, l.refused)
}

// effects returns the effects of each operation that were committed.
func (l *Load) effects(db *sql.DB) map[string][]string {
	l.Helper()
	rows, err := db.QueryContext(l.Context(), "SELECT name FROM effects")
	Must(l, err)
	defer rows.Close()
	effects := map[string][]string{}
	for rows.Next() {
		var name string
		Must(l, rows.Scan(&name))
		key, _, _ := strings.Cut(name, ",")
		effects[key] = append(effects[key], name)
	}
	Must(l, rows.Err())
	return effects
}
