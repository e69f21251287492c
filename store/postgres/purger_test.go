package reprisepg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// refusing is a driver that connects to nothing, and notes when it was asked to.
type refusing struct {
	hangs bool // until the caller leaves

	mu    sync.Mutex
	asked []time.Time
}

// Connect implements driver.Connector.
func (r *refusing) Connect(ctx context.Context) (driver.Conn, error) {
	r.mu.Lock()
	r.asked = append(r.asked, time.Now())
	r.mu.Unlock()
	if r.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("refused")
}

func (r *refusing) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

// Driver implements driver.Connector.
func (r *refusing) Driver() driver.Driver { return nil }

// TestThePurgerKeepsItsPace: it purges at once and then about every Every, not all
// processes at the same moment, goes on after failures and logs why each failed, and ends
// with its context.
func TestThePurgerKeepsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		var (
			away refusing
			log  strings.Builder
		)
		db := sql.OpenDB(&away)
		defer func() { _ = db.Close() }()
		store, err := NewSQL(db, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), rounds*time.Hour)
		defer stop()
		start := time.Now()
		if err := store.RunPurger(ctx, PurgerConfig{Every: time.Hour}); err != nil || time.Since(start) != rounds*time.Hour {
			t.Errorf("it ended after %v with %v", time.Since(start), err)
		}
		if len(away.asked) < rounds*9/10 || len(away.asked) > rounds*11/10+1 || !away.asked[0].Equal(start) {
			t.Fatalf("%d rounds in %d times its pace, the first after %v", len(away.asked), rounds, away.asked[0].Sub(start))
		}
		shortest, longest := rounds*time.Hour, time.Duration(0)
		for i := 1; i < len(away.asked); i++ {
			gap := away.asked[i].Sub(away.asked[i-1])
			shortest, longest = min(shortest, gap), max(longest, gap)
		}
		if shortest < 54*time.Minute || longest > 66*time.Minute || longest-shortest < time.Minute {
			t.Errorf("rounds are %v to %v apart, want a tenth of an hour to either side", shortest, longest)
		}
		if n := strings.Count(log.String(), "purge failed"); n != len(away.asked) || strings.Count(log.String(), "refused") != n {
			t.Errorf("%d of %d failures are logged, the last as %s", n, len(away.asked), log.String()[strings.LastIndex(log.String(), "msg="):])
		}
	})
}

// TestAPurgeWithoutAConnectionSaysSo: a round whose time ended before it had a connection
// is not told to delete less, and one that the end of the purger interrupts does not
// count as a failure.
func TestAPurgeWithoutAConnectionSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		db := sql.OpenDB(&refusing{hangs: true})
		defer func() { _ = db.Close() }()
		store, err := NewSQL(db, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for end, want := range map[time.Duration]int{29 * time.Second: 0, 31 * time.Second: 1} {
			log.Reset()
			ctx, stop := context.WithTimeout(t.Context(), end)
			if err := store.RunPurger(ctx, PurgerConfig{Timeout: 30 * time.Second}); err != nil {
				t.Error(err)
			}
			stop()
			if n := strings.Count(log.String(), "no connection available within 30s"); n != want || strings.Count(log.String(), "\n") != want {
				t.Errorf("in %v: %s", end, log.String())
			}
		}
	})
}
