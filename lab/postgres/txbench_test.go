package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// pgContender is one side of a comparison: an operation, and how often in a round.
type pgContender struct {
	name string
	run  func(context.Context) error
}

// BenchmarkPostgresTransactional (P8) compares the transactional store with its floors at
// 64 callers. Each iteration is one round, in which every contender runs for the same
// time, in a new order. It reports medians over the rounds: operations per second, and
// their ratio to the floor of the same round.
//
//	go test ./lab/postgres -run '^$' -bench PostgresTransactional -benchtime 8x
//
// The floor of a new operation is a bare INSERT and a bare UPDATE, each prepared and
// committed at once; that of a replay is a prepared SELECT by primary key. Client and
// server share the machine, so the ratios are those of their CPU time together.
func BenchmarkPostgresTransactional(b *testing.B) {
	const callers = 64
	f := pgSetup(b, servers.StartPostgres(b, "max_connections=200"), labtest.MaxConns(callers+2))
	f.exec(b, "CREATE TABLE "+f.name("bare")+" (id bytea PRIMARY KEY, payload bytea)")
	f.exec(b, "CREATE TABLE "+f.name("effects")+" (n integer)")
	done := make([]reprise.ClaimRequest, 1000)
	for i := range done {
		done[i] = pgClaim()
		pgMustClaim(b, f.Leased(b), done[i], reprise.Claimed)
		pgWant(b, "complete", pgComplete(b, f.Leased(b), done[i], pgBody), nil)
		f.exec(b, "INSERT INTO "+f.name("bare")+" VALUES ($1, $2)", done[i].ID[:], []byte(pgBody))
	}
	insert := "INSERT INTO " + f.name("bare") + " VALUES ($1, NULL)"
	update := "UPDATE " + f.name("bare") + " SET payload = $2 WHERE id = $1"
	lookup := "SELECT payload FROM " + f.name("bare") + " WHERE id = $1"
	effect := "INSERT INTO " + f.name("effects") + " VALUES (1)"

	floorNew := func(ctx context.Context) error {
		var id reprise.ID
		_, _ = rand.Read(id[:])
		if _, err := f.Pool.Exec(ctx, insert, id[:]); err != nil {
			return err
		}
		_, err := f.Pool.Exec(ctx, update, id[:], []byte(pgBody))
		return err
	}
	floorReplay := func(ctx context.Context) error {
		var payload []byte
		return f.Pool.QueryRow(ctx, lookup, done[mathrand.N(len(done))].ID[:]).Scan(&payload)
	}
	attempt := func(store reprise.Store, effect func(context.Context, reprise.ClaimRequest) error) func(context.Context) error {
		return func(ctx context.Context) error {
			r := pgClaim()
			got, err := store.Claim(ctx, r)
			if err != nil || got.Outcome != reprise.Claimed {
				return fmt.Errorf("claim: %v, %w", got.Outcome, err)
			}
			if effect != nil {
				if err := effect(ctx, r); err != nil {
					return err
				}
			}
			return store.Complete(ctx, pgCompletion(r, pgBody))
		}
	}
	replay := func(store reprise.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := store.Claim(ctx, pgRival(done[mathrand.N(len(done))]))
			if err != nil || got.Outcome != reprise.Completed {
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
		{"replay", []pgContender{{"floor", floorReplay}, {"store", replay(common)}}},
		{"one replay in four", []pgContender{{"floor", oneInFour(floorReplay, floorNew)}, {"store", oneInFour(replay(mixed), attempt(mixed, nil))}}},
		{"effect", []pgContender{
			{"floor", func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, f.Pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, effect)
					return err
				})
			}},
			{"store", attempt(effects, func(ctx context.Context, r reprise.ClaimRequest) error {
				_, err := pgTx(b, effects, r).Exec(ctx, effect)
				return err
			})},
		}},
	} {
		b.Run(c.name, func(b *testing.B) { pgShuffled(b, callers, c.contenders) })
	}
}

// pgShuffled runs the contenders in rounds and reports medians. The first contender is
// the floor.
func pgShuffled(b *testing.B, callers int, contenders []pgContender) {
	const turn = 500 * time.Millisecond
	for _, c := range contenders { // connections, prepared statements, caches
		pgThroughput(b, callers, turn, c.run)
	}
	rates := make([][]float64, len(contenders))
	ratios := make([][]float64, len(contenders))
	for b.Loop() {
		round := make([]float64, len(contenders))
		for _, i := range mathrand.Perm(len(contenders)) {
			round[i] = pgThroughput(b, callers, turn, contenders[i].run)
		}
		for i, rate := range round {
			rates[i], ratios[i] = append(rates[i], rate), append(ratios[i], rate/round[0])
		}
	}
	for i, c := range contenders {
		b.ReportMetric(pgMedian(rates[i]), c.name+"/s")
		if i > 0 {
			b.ReportMetric(pgMedian(ratios[i]), c.name+"/floor")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// pgThroughput runs an operation from all callers for a while and returns how many
// ended in a second.
func pgThroughput(b *testing.B, callers int, turn time.Duration, run func(context.Context) error) float64 {
	b.Helper()
	var (
		wg    sync.WaitGroup
		ended = make([]int, callers)
		start = time.Now()
	)
	for i := range callers {
		wg.Go(func() {
			for time.Since(start) < turn {
				if err := run(b.Context()); err != nil {
					b.Error(err)
					return
				}
				ended[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range ended {
		total += n
	}
	return float64(total) / time.Since(start).Seconds()
}

func pgMedian(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
