package postgres

import (
	"cmp"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// The rounds of a comparison with its floor.
const (
	floorRounds  = 12
	floorWarmUp  = 100 * time.Millisecond
	floorMeasure = 300 * time.Millisecond
)

// pgContestant is one side of a comparison: an operation that callers repeat.
type pgContestant struct {
	name string
	run  func(context.Context) error
}

// BenchmarkPostgresFloors (P7) compares operations of the leased store with the
// statements of a program without it, over one pool: an INSERT and an UPDATE, and a
// SELECT by primary key, prepared. It reports operations per second as ratios, medians of
// shuffled rounds. 64 callers share 16 connections, as they would in a service.
func BenchmarkPostgresFloors(b *testing.B) {
	server := servers.StartPostgres(b, "shared_buffers=256MB", "max_wal_size=4GB")
	for _, callers := range []int{1, 8, 64} {
		for _, way := range []string{"combined", "alone", "unprepared"} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, way), func(b *testing.B) {
				benchFloors(b, server, callers, way)
			})
		}
	}
}

func benchFloors(b *testing.B, server *servers.PostgresServer, callers int, way string) {
	conns := int32(min(callers, 16))
	mode := pgx.QueryExecModeCacheStatement
	if way == "unprepared" {
		mode = pgx.QueryExecModeExec
	}
	f := pgSetup(b, server, labtest.MaxConns(conns), labtest.ExecMode(mode))
	f.Config.NoCombining = way == "alone"
	f.exec(b, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, state smallint NOT NULL, owner bytea NOT NULL, fingerprint bytea NOT NULL, payload bytea NOT NULL) WITH (fillfactor = 90)")
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1, 1, $2, $3, '')"
	update := "UPDATE " + f.name("bare") + " SET state = 2, payload = $3 WHERE id = $1 AND owner = $2 AND state = 1"
	lookup := "SELECT payload FROM " + f.name("bare") + " WHERE id = $1"
	st, body := f.Leased(b), []byte(pgBody)
	done := make([]store.ClaimRequest, 256)
	for i := range done {
		done[i] = labtest.NewClaim()
		labtest.WantClaim(b, st, done[i], store.Claimed)
		labtest.Want(b, "complete", labtest.Complete(b, st, done[i], pgBody), nil)
		f.exec(b, "INSERT INTO "+f.name("bare")+" VALUES ($1, 2, $2, $3, $4)", done[i].ID[:], done[i].Owner[:], done[i].Fingerprint[:], body)
	}
	compare := func(what string, floor, ours pgContestant) {
		rate, cost := pgCompare(b, f.Pool, callers, floor, ours)
		b.ReportMetric(rate, what+"×floor")
		b.ReportMetric(cost, what+"-CPU×floor")
	}
	for b.Loop() {
		compare("new", pgContestant{"floor", func(ctx context.Context) error {
			r := labtest.NewClaim()
			if _, err := f.Pool.Exec(ctx, insert, r.ID[:], r.Owner[:], r.Fingerprint[:]); err != nil {
				return err
			}
			_, err := f.Pool.Exec(ctx, update, r.ID[:], r.Owner[:], body)
			return err
		}}, pgContestant{"store", func(ctx context.Context) error {
			r := labtest.NewClaim()
			if got, err := st.Claim(ctx, r); err != nil || got.Outcome != store.Claimed {
				return fmt.Errorf("%v, %w", got.Outcome, err)
			}
			return st.Complete(ctx, store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: body, Policy: store.Policy{Retention: r.Retention}})
		}})
		compare("replay", pgContestant{"floor", func(ctx context.Context) error {
			var payload []byte
			return f.Pool.QueryRow(ctx, lookup, done[mathrand.IntN(len(done))].ID[:]).Scan(&payload)
		}}, pgContestant{"store", func(ctx context.Context) error {
			got, err := st.Claim(ctx, labtest.Rival(done[mathrand.IntN(len(done))]))
			if err == nil && got.Outcome != store.Completed {
				return fmt.Errorf("claim answered %v", got.Outcome)
			}
			return err
		}})
	}
}

// pgCompare returns how many operations ours does in the time in which floor does one,
// and how much processor time, of client and server together, one takes for each of the
// floor's. The second says more on a machine that does other work as well.
func pgCompare(b *testing.B, pool *pgxpool.Pool, callers int, floor, ours pgContestant) (rate, cost float64) {
	b.Helper()
	rates, costs := map[string][]float64{}, map[string][]float64{}
	for range floorRounds {
		round := []pgContestant{floor, ours}
		mathrand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, c := range round {
			rate, cost := pgMeasure(b, pool, callers, c)
			rates[c.name], costs[c.name] = append(rates[c.name], rate), append(costs[c.name], cost)
		}
	}
	median := func(v []float64) float64 {
		slices.SortFunc(v, cmp.Compare[float64])
		return v[len(v)/2]
	}
	b.Logf("%d callers: floor %.0f/s of %.1f µs, store %.0f/s of %.1f µs", callers,
		median(rates[floor.name]), median(costs[floor.name]), median(rates[ours.name]), median(costs[ours.name]))
	return median(rates[ours.name]) / median(rates[floor.name]), median(costs[ours.name]) / median(costs[floor.name])
}

// pgMeasure returns the operations per second of callers that repeat c, and the processor
// time of each in microseconds.
func pgMeasure(b *testing.B, pool *pgxpool.Pool, callers int, c pgContestant) (rate, cost float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var (
		wg            sync.WaitGroup
		counted, stop atomic.Bool
		n             atomic.Int64
	)
	for range callers {
		wg.Go(func() {
			for !stop.Load() {
				if err := c.run(ctx); err != nil {
					b.Errorf("%s: %v", c.name, err)
					return
				}
				if counted.Load() {
					n.Add(1)
				}
			}
		})
	}
	pgPass(floorWarmUp)
	pids := pgProcesses(b, pool)
	before, start := pgProcessorTime(pids), time.Now()
	counted.Store(true)
	pgPass(floorMeasure)
	counted.Store(false)
	took, used := time.Since(start), pgProcessorTime(pids)-before
	stop.Store(true)
	wg.Wait()
	return float64(n.Load()) / took.Seconds(), float64(used.Microseconds()) / float64(max(n.Load(), 1))
}

// pgProcesses returns this process and those of the server.
func pgProcesses(b *testing.B, pool *pgxpool.Pool) []int {
	b.Helper()
	rows, err := pool.Query(b.Context(), "SELECT pid FROM pg_stat_activity", pgx.QueryExecModeExec)
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	return append(pids, os.Getpid())
}

// pgProcessorTime returns how long processes have been running on a processor. A system
// that does not say counts as none.
func pgProcessorTime(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			if fields := strings.Fields(string(text)); len(fields) > 0 {
				ns, _ := strconv.ParseInt(fields[0], 10, 64)
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}
