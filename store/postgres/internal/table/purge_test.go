package table

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/upkeep"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestPurgeRefusesInvalidLimits: and asks for a connection with the others.
func TestPurgeRefusesInvalidLimits(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(&pgtest.Refusing{})
	defer func() { _ = db.Close() }()
	st := newTestTable(t, db, slog.Default())
	for limit, want := range map[int]error{
		-1: store.ErrInvalid, 0: store.ErrInvalid, 1: store.ErrUnavailable, 100_000: store.ErrUnavailable, 100_001: store.ErrInvalid,
	} {
		if _, err := st.Purge(t.Context(), limit); !errors.Is(err, want) {
			t.Errorf("a purge of %d: %v, want %v", limit, err, want)
		}
	}
	for limit, want := range map[int]error{0: store.ErrInvalid, 1: store.ErrUnavailable} {
		if _, err := st.Purgeable(t.Context(), limit); !errors.Is(err, want) {
			t.Errorf("a count up to %d: %v, want %v", limit, err, want)
		}
	}
}

// TestMaintainKeepsItsPace: it purges within Every and then about every Every, not all
// processes at the same moment, goes on after failures and logs why they failed, and ends
// with its context.
func TestMaintainKeepsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		var (
			away pgtest.Refusing
			log  strings.Builder
		)
		db := sql.OpenDB(&away)
		defer func() { _ = db.Close() }()
		records := newTestTable(t, db, slog.New(slog.NewTextHandler(&log, nil)))
		records.Options.Purge = upkeep.Pace{Every: time.Hour, Batch: 1, Timeout: time.Minute}
		ctx, stop := context.WithTimeout(t.Context(), rounds*time.Hour)
		defer stop()
		start := time.Now()
		records.Maintain(ctx)
		if time.Since(start) != rounds*time.Hour {
			t.Errorf("it ended after %v", time.Since(start))
		}
		asked := away.Asked()
		if len(asked) < rounds*9/10 || len(asked) > rounds*11/10+1 || asked[0].Sub(start) >= time.Hour {
			t.Fatalf("%d rounds in %d times its pace, the first after %v", len(asked), rounds, asked[0].Sub(start))
		}
		shortest, longest := rounds*time.Hour, time.Duration(0)
		for i := 1; i < len(asked); i++ {
			gap := asked[i].Sub(asked[i-1])
			shortest, longest = min(shortest, gap), max(longest, gap)
		}
		if shortest < 54*time.Minute || longest > 66*time.Minute || longest-shortest < time.Minute {
			t.Errorf("rounds are %v to %v apart, want a tenth of an hour to either side", shortest, longest)
		}
		if n := strings.Count(log.String(), "purge failed"); n != len(asked) || strings.Count(log.String(), "refused") != n {
			t.Errorf("%d of %d failures are logged, the last as %s", n, len(asked), log.String()[strings.LastIndex(log.String(), "msg="):])
		}
	})
}

// TestMaintainKeepsProcessesApart: a hundred processes that start together purge for the
// first time all over their pace.
func TestMaintainKeepsProcessesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away pgtest.Refusing
		db := sql.OpenDB(&away)
		defer func() { _ = db.Close() }()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		start := time.Now()
		var processes sync.WaitGroup
		for range 100 {
			records := newTestTable(t, db, slog.New(slog.DiscardHandler))
			records.Options.Purge = upkeep.Pace{Every: time.Minute, Batch: 1, Timeout: time.Minute}
			processes.Go(func() { records.Maintain(ctx) })
		}
		processes.Wait()
		thirds := [3]int{}
		for _, at := range away.Asked() {
			thirds[min(2, at.Sub(start)/(20*time.Second))]++
		}
		if slices.Min(thirds[:]) < 10 {
			t.Errorf("%v purges in the thirds of the first minute, want about 33 in each", thirds)
		}
	})
}

// TestMaintainLogsOnceAMinute: and says how many purges failed.
func TestMaintainLogsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		db := sql.OpenDB(&pgtest.Refusing{})
		defer func() { _ = db.Close() }()
		records := newTestTable(t, db, slog.New(slog.NewTextHandler(&log, nil)))
		records.Options.Purge = upkeep.Pace{Every: time.Second, Batch: 1, Timeout: time.Minute}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute-time.Second)
		defer stop()
		records.Maintain(ctx)
		if n := strings.Count(log.String(), "\n"); n < 9 || n > 10 || strings.Count(log.String(), "failures=1 ") != 1 {
			t.Errorf("%d lines in ten minutes:\n%s", n, log.String())
		}
	})
}

// TestMaintainIsTurnedOff: by a negative pace, before it asks for a connection.
func TestMaintainIsTurnedOff(t *testing.T) {
	t.Parallel()
	var away pgtest.Refusing
	db := sql.OpenDB(&away)
	defer func() { _ = db.Close() }()
	records := newTestTable(t, db, slog.Default())
	records.Options.Purge = upkeep.Pace{Every: -1, Batch: 1, Timeout: time.Minute}
	records.Maintain(t.Context()) // returns
	if n := len(away.Asked()); n != 0 {
		t.Errorf("%d connections were asked for", n)
	}
}

// TestMaintainSaysThatNoConnectionIsAvailable: a round whose time ended before it had a
// connection is not told to delete less, and one that the end of the context interrupts
// does not count as a failure.
func TestMaintainSaysThatNoConnectionIsAvailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		db := sql.OpenDB(&pgtest.Refusing{Hangs: true})
		defer func() { _ = db.Close() }()
		records := newTestTable(t, db, slog.New(slog.NewTextHandler(&log, nil)))
		for end, want := range map[time.Duration]int{29 * time.Second: 0, 31 * time.Second: 1} {
			log.Reset()
			ctx, stop := context.WithTimeout(t.Context(), end)
			records.Options.Purge = upkeep.Pace{Every: time.Second, Batch: 1, Timeout: 30 * time.Second}
			records.Maintain(ctx)
			stop()
			if n := strings.Count(log.String(), "no connection available within 30s"); n != want || strings.Count(log.String(), "\n") != want {
				t.Errorf("in %v: %s", end, log.String())
			}
		}
	})
}
