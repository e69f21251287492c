package postgres

import (
	"context"
	"crypto/rand"
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

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgContender is one side of a comparison: an operation, and how often in a round.
type pgContender struct {
	name string
	run  func(context.Context) error
}

// BenchmarkPostgresTransactional (P8) compares the transactional store with its floors at
// 64 callers. Each iteration is one round, in which every contender runs for the same
// time, in a new order. It reports medians over the rounds: operations per second and
// processor time of client and server for each, and their ratios to the floor of the same
// round.
//
//	go test ./lab/postgres -run '^$' -bench PostgresTransactional -benchtime 8x
//
// The floor of a new operation is a bare INSERT and a bare UPDATE, each prepared and
// committed at once; that of a replay is a prepared SELECT by primary key.
func BenchmarkPostgresTransactional(b *testing.B) {
	const callers = 64
	f := pgSetup(b, servers.StartPostgres(b, "max_connections=200"), labtest.MaxConns(callers+2))
	f.exec(b, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, payload bytea)")
	f.exec(b, "CREATE TABLE "+f.name("effects")+" (n integer)")
	done := make([]store.ClaimRequest, 1000)
	for i := range done {
		done[i] = pgClaim()
		pgMustClaim(b, f.Leased(b), done[i], store.Claimed)
		pgWant(b, "complete", pgComplete(b, f.Leased(b), done[i], pgBody), nil)
		f.exec(b, "INSERT INTO "+f.name("bare")+" VALUES ($1, $2)", done[i].ID[:], []byte(pgBody))
	}
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1, NULL)"
	update := "UPDATE " + f.name("bare") + " SET payload = $2 WHERE id = $1"
	lookup := "SELECT payload FROM " + f.name("bare") + " WHERE id = $1"
	effect := "INSERT INTO " + f.name("effects") + " VALUES (1)"

	small := pgOn(labtest.NewPool(b, f.Pool.Config().ConnString(), labtest.MaxConns(18)), f.Config)
	floorNewOn := func(f *pgFixture) func(context.Context) error {
		return func(ctx context.Context) error {
			var id store.ID
			_, _ = rand.Read(id[:])
			if _, err := f.Pool.Exec(ctx, insert, id[:]); err != nil {
				return err
			}
			_, err := f.Pool.Exec(ctx, update, id[:], []byte(pgBody))
			return err
		}
	}
	floorNew := floorNewOn(f)
	floorReplay := func(ctx context.Context) error {
		var payload []byte
		return f.Pool.QueryRow(ctx, lookup, done[mathrand.N(len(done))].ID[:]).Scan(&payload)
	}
	attempt := func(st store.Store, effect func(context.Context, store.ClaimRequest) error) func(context.Context) error {
		return func(ctx context.Context) error {
			r := pgClaim()
			got, err := st.Claim(ctx, r)
			if err != nil || got.Outcome != store.Claimed {
				return fmt.Errorf("claim: %v, %w", got.Outcome, err)
			}
			if effect != nil {
				if err := effect(ctx, r); err != nil {
					return err
				}
			}
			return st.Complete(ctx, pgCompletion(r, pgBody))
		}
	}
	replay := func(st store.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := st.Claim(ctx, pgRival(done[mathrand.N(len(done))]))
			if err != nil || got.Outcome != store.Completed {
				return fmt.Errorf("claim: %v, %w", got.Outcome, err)
			}
			return nil
		}
	}
	oneInFour := func(seldom, often func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if mathrand.N(4) == 0 {
				return seldom(ctx)
			}
			return often(ctx)
		}
	}
	fresh, common, mixed, effects := f.Transactional(b), f.Transactional(b), f.Transactional(b), f.Transactional(b)
	for _, c := range []struct {
		name       string
		contenders []pgContender // the floor first
	}{
		{"new", []pgContender{{"floor", floorNew}, {"store", attempt(fresh, nil)}}},
		{"new over 18 connections", []pgContender{{"floor", floorNewOn(small)}, {"store", attempt(small.Transactional(b), nil)}}},
		{"replay", []pgContender{{"floor", floorReplay}, {"store", replay(common)}}},
		{"one replay in four", []pgContender{{"floor", oneInFour(floorReplay, floorNew)}, {"store", oneInFour(replay(mixed), attempt(mixed, nil))}}},
		{"effect", []pgContender{
			{"floor", func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, f.Pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, effect)
					return err
				})
			}},
			{"store", attempt(effects, func(ctx context.Context, r store.ClaimRequest) error {
				_, err := pgTx(b, effects, r).Exec(ctx, effect) //nolint:contextcheck // pgTx binds the attempt and not a call
				return err
			})},
		}},
	} {
		b.Run(c.name, func(b *testing.B) { pgShuffled(b, f, callers, c.contenders) })
	}
}

// pgShuffled runs the contenders in rounds and reports medians. The first contender is
// the floor.
func pgShuffled(b *testing.B, f *pgFixture, callers int, contenders []pgContender) {
	const turn = 500 * time.Millisecond
	server := pgPostmaster(b, f)
	for _, c := range contenders { // connections, prepared statements, caches
		pgThroughput(b, callers, turn, c.run)
	}
	type series struct{ rate, rateRatio, cost, costRatio []float64 }
	medians := make([]series, len(contenders))
	for b.Loop() {
		rates, costs := make([]float64, len(contenders)), make([]float64, len(contenders))
		for _, i := range mathrand.Perm(len(contenders)) {
			before := pgCPU(b, server)
			var ended int
			ended, rates[i] = pgThroughput(b, callers, turn, contenders[i].run)
			costs[i] = float64((pgCPU(b, server) - before).Nanoseconds()) / 1000 / float64(ended)
		}
		for i := range contenders {
			m := &medians[i]
			m.rate, m.rateRatio = append(m.rate, rates[i]), append(m.rateRatio, rates[i]/rates[0])
			m.cost, m.costRatio = append(m.cost, costs[i]), append(m.costRatio, costs[i]/costs[0])
		}
	}
	for i, c := range contenders {
		b.ReportMetric(pgMedian(medians[i].rate), c.name+"/s")
		b.ReportMetric(pgMedian(medians[i].cost), c.name+"-µs")
		if i > 0 {
			b.ReportMetric(pgMedian(medians[i].rateRatio), c.name+"-rate/floor")
			b.ReportMetric(pgMedian(medians[i].costRatio), c.name+"-cpu/floor")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// pgThroughput runs an operation from all callers for a while. It returns how many ended,
// and how many in a second.
func pgThroughput(b *testing.B, callers int, turn time.Duration, run func(context.Context) error) (ended int, rate float64) {
	b.Helper()
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		start = time.Now()
	)
	for range callers {
		wg.Go(func() {
			for time.Since(start) < turn {
				if err := run(b.Context()); err != nil {
					b.Error(err)
					return
				}
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return int(total.Load()), float64(total.Load()) / time.Since(start).Seconds()
}

// pgPostmaster returns the process that the server's sessions belong to.
func pgPostmaster(b *testing.B, f *pgFixture) string {
	b.Helper()
	session := pgValue[int](b, f.Pool, "SELECT pg_backend_pid()")
	fields, err := pgProcess(strconv.Itoa(session))
	if err != nil {
		b.Skipf("the processor time of the server cannot be read: %v", err)
	}
	return fields[pgParent]
}

// pgCPU returns the processor time that this process and the sessions of the server have
// used. The sessions of a pool stay, so the difference of two values is the time used in
// between.
func pgCPU(b *testing.B, postmaster string) time.Duration {
	b.Helper()
	const tick = 10 * time.Millisecond // of Linux
	total := time.Duration(0)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid := filepath.Base(dir)
		fields, err := pgProcess(pid)
		if err != nil || (fields[pgParent] != postmaster && pid != strconv.Itoa(os.Getpid())) {
			continue
		}
		user, _ := strconv.Atoi(fields[pgUserTime])
		system, _ := strconv.Atoi(fields[pgSystemTime])
		total += time.Duration(user+system) * tick
	}
	return total
}

// The fields of /proc/<pid>/stat behind the name of the program.
const (
	pgParent     = 1
	pgUserTime   = 11
	pgSystemTime = 12
)

func pgProcess(pid string) ([]string, error) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest), nil
}

func pgMedian(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
