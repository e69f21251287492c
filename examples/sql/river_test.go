package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// charge is the job that a handler inserts in its transaction. Its key is that of the
// operation, the same however often the job is inserted.
type charge struct {
	Key string `json:"key"`
}

// Kind implements [river.JobArgs].
func (charge) Kind() string { return "charge" }

// charger books charges.
type charger struct {
	river.WorkerDefaults[charge]

	engine *reprise.Engine
}

// Work books a charge once, however often River tries the job.
func (c *charger) Work(ctx context.Context, task *river.Job[charge]) error {
	_, err := job.Do(ctx, c.engine, reprise.Operation{
		Scope: "charges", Key: task.Args.Key, Fingerprint: store.FingerprintOf(task.EncodedArgs), Retention: 30 * 24 * time.Hour, Transactional: true,
	}, nil, func(ctx context.Context) (string, error) {
		tx, err := reprisepg.Tx(ctx)
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO bookings VALUES ($1)", task.Args.Key)
		}
		return "booked", err
	})
	switch action, delay := job.SettlementOf(err); action {
	case job.Ack:
		return nil
	case job.Park:
		return river.JobCancel(err)
	default: // River discards a job after 25 errors; a snooze does not count
		return river.JobSnooze(cmp.Or(delay, time.Second))
	}
}

// A job commits with the record of its handler, or with neither; two jobs of one key are
// booked once.
func TestRiverJobCommitsWithTheRecordAndIsBookedOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, servers.StartPostgres(t, "fsync=on").URL())
	servers.Must(t, err)
	t.Cleanup(pool.Close)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	servers.Must(t, err)
	_, migrated := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	_, created := pool.Exec(ctx, "CREATE TABLE bookings (key text)") // no constraint: only Reprise keeps it from a second row
	servers.Must(t, errors.Join(migrated, created, reprisepg.Migrate(ctx, pool, reprisepg.Config{})))
	records, err := reprisepg.Open(ctx, pool, reprisepg.Config{})
	servers.Must(t, err)
	engine, err := reprise.New(records, reprise.Config{})
	servers.Must(t, err)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(ctx)) })
	workers := river.NewWorkers()
	river.AddWorker(workers, &charger{engine: engine})
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}}, Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	servers.Must(t, err)
	count := func(query string) (n int) {
		servers.Must(t, pool.QueryRow(ctx, query).Scan(&n))
		return n
	}

	refused := errors.New("refused")
	for call, c := range []struct {
		result error
		jobs   int // afterwards
	}{{refused, 0}, {nil, 2}, {nil, 2}} {
		_, err := job.Do(ctx, engine, reprise.Operation{Scope: "orders", Key: "o-1", Fingerprint: store.Fingerprint{1}, Transactional: true}, nil, func(ctx context.Context) (string, error) {
			tx, err := reprisepg.Tx(ctx)
			if err != nil {
				return "", err
			}
			for range 2 {
				if _, err := jobs.InsertTx(ctx, tx, charge{Key: "o-1"}, nil); err != nil {
					return "", err
				}
			}
			return "", c.result
		})
		if n := count("SELECT count(*) FROM river_job"); !errors.Is(err, c.result) || n != c.jobs {
			t.Errorf("call %d: %v, and %d jobs, want %d", call, err, n, c.jobs)
		}
	}
	servers.Must(t, jobs.Start(ctx))
	t.Cleanup(func() { _ = jobs.Stop(context.WithoutCancel(ctx)) })
	for end := time.After(time.Minute); count("SELECT count(*) FROM river_job WHERE state <> 'completed'") > 0; {
		select {
		case <-end:
			t.Fatal("jobs are left after a minute")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if n := count("SELECT count(*) FROM bookings"); n != 1 {
		t.Errorf("%d bookings of two jobs with one key, want 1", n)
	}
}
