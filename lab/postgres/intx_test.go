package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgInTx is an engine over the leased store whose handlers complete in their own
// transactions.
type pgInTx struct {
	*pgFixture

	store  *reprisepg.Store
	engine *reprise.Engine
	db     *sql.DB // or nil: handlers use the pool
}

// pgInTxLease is a lease that no attempt of these tests outlives.
const pgInTxLease = 30 * time.Second

func newPgInTx(t *testing.T, f *pgFixture, url string, lease time.Duration, sqlDB bool, options ...labtest.PoolOption) *pgInTx {
	t.Helper()
	service := &pgInTx{pgFixture: pgOn(labtest.NewPool(t, url, options...), f.Config)}
	service.store = service.Leased(t)
	if sqlDB {
		service.db = labtest.NewDB(t, url, options...)
	}
	var err error
	service.engine, err = reprise.New(service.store, reprise.Config{Lease: lease})
	pgWant(t, "engine", err, nil)
	t.Cleanup(func() {
		ctx, cancel := pgCall(t)
		defer cancel()
		_ = service.engine.Close(ctx)
	})
	return service
}

// run has an effect and completes, in one transaction.
func (s *pgInTx) run(ctx context.Context, payload string, between func() error) error {
	view, _ := reprise.AttemptFrom(ctx)
	id := view.ID()
	effect := s.insertion()
	if s.db != nil {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, effect, id[:]); err != nil {
			return err
		}
		if err := reprisepg.InSQLTx(ctx, tx, []byte(payload)); err != nil {
			return err
		}
		if err := between(); err != nil {
			return err
		}
		return tx.Commit()
	}
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, effect, id[:]); err != nil {
			return err
		}
		if err := reprisepg.InTx(ctx, tx, []byte(payload)); err != nil {
			return err
		}
		return between()
	})
}

func nothingBetween() error { return nil }

// TestPostgresInTx: an operation that is completed in the handler's own transaction is
// completed exactly when that commits. While it is open duplicates are answered at
// once, and an attempt that lost its lease cannot commit.
func TestPostgresInTx(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, sqlDB := range []bool{false, true} {
		f := pgSetup(t, server)
		f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL)")
		effects := func() int { return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")) }
		s := newPgInTx(t, f, server.URL(), pgInTxLease, sqlDB)
		begin := func(key string, want reprise.Outcome) reprise.Result {
			t.Helper()
			got, err := s.engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: key})
			pgWant(t, "begin", err, nil)
			if got.Outcome != want {
				t.Fatalf("begin of %q answered %v, want %v", key, got.Outcome, want)
			}
			return got
		}

		kept := begin("kept", reprise.Claimed).Attempt
		pgWant(t, "run", s.run(kept.Context(), "answer", func() error {
			if n := effects(); n != 0 {
				t.Errorf("%d effects are visible before the commit", n)
			}
			begin("kept", reprise.InProgress)
			another := pgClaim() // of another process
			another.ID, another.Fingerprint = kept.ID(), store.Fingerprint{}
			if got := pgMustNotFail(t, f.Leased(t), another); got.Outcome == store.Claimed {
				t.Error("an attempt that is just committing was taken over")
			}
			return nil
		}), nil)
		result, err := kept.Complete(reprise.Completion{Payload: []byte("answer")})
		if err != nil || result.End != reprise.EndRecorded {
			t.Errorf("complete with the same answer: %v, %v", result, err)
		}
		if got := begin("kept", reprise.Replayed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}

		other := begin("other", reprise.Claimed).Attempt
		pgWant(t, "run", s.run(other.Context(), "stored", nothingBetween), nil)
		result, err = other.Complete(reprise.Completion{Payload: []byte("written")})
		if err != nil || result.End != reprise.EndSuperseded || string(result.Payload) != "stored" {
			t.Errorf("complete with another answer: %+v, %v, want the stored one", result, err)
		}

		undone := begin("undone", reprise.Claimed).Attempt
		refused := errors.New("no")
		pgWant(t, "run", s.run(undone.Context(), "answer", func() error { return refused }), refused)
		pgWant(t, "release", undone.Release(), nil)
		undone = begin("undone", reprise.Claimed).Attempt
		pgWant(t, "release", undone.Release(), nil)

		released := begin("released", reprise.Claimed).Attempt
		pgWant(t, "run", s.run(released.Context(), "answer", nothingBetween), nil)
		pgWant(t, "release after the commit", released.Release(), nil)
		begin("released", reprise.Replayed)

		stale := begin("stale", reprise.Claimed).Attempt
		id := stale.ID()
		nobody := store.NewOwner()
		f.exec(t, "UPDATE "+f.records()+" SET owner = $2 WHERE id = $1", id[:], nobody[:])
		pgWant(t, "run of a stale attempt", s.run(stale.Context(), "answer", nothingBetween), store.ErrLeaseLost)
		_ = stale.Release()
		if n := effects(); n != 3 {
			t.Errorf("%d effects, want those of the three transactions that committed", n)
		}

		pgWant(t, "outside of a handler", reprisepg.InSQLTx(t.Context(), nil, nil), store.ErrInvalid)
		pgWant(t, "outside of a handler", reprisepg.InTx(t.Context(), nil, nil), store.ErrInvalid)
	}
}

// TestPostgresInTxThatWasUndone: an operation whose own transaction was rolled back is
// the engine's to complete, also where its record is gone.
func TestPostgresInTxThatWasUndone(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL)")
	s := newPgInTx(t, f, server.URL(), pgInTxLease, false)
	refused := errors.New("no")
	for _, gone := range []bool{false, true} {
		op := reprise.Operation{Scope: "tenant", Key: fmt.Sprint("gone ", gone)}
		begun, err := s.engine.Begin(t.Context(), op)
		pgWant(t, "begin", err, nil)
		pgWant(t, "run", s.run(begun.Attempt.Context(), "answer", func() error { return refused }), refused)
		if gone {
			id := begun.Attempt.ID()
			f.exec(t, "DELETE FROM "+f.records()+" WHERE id = $1", id[:])
		}
		result, err := begun.Attempt.Complete(reprise.Completion{Payload: []byte("refused")})
		if err != nil || result.End != reprise.EndRecorded {
			t.Errorf("gone %t: complete: %+v, %v", gone, result, err)
		}
		got, err := s.engine.Begin(t.Context(), op)
		if err != nil || got.Outcome != reprise.Replayed || string(got.Payload) != "refused" {
			t.Errorf("gone %t: a retry got %v, %q, %v", gone, got.Outcome, got.Payload, err)
		}
	}
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")); n != 0 {
		t.Errorf("%d effects of transactions that were rolled back", n)
	}
}

// TestPostgresInTxTakeover: a lapsed attempt whose transaction has locked its record is
// not taken over before that ends, and no claim waits for it.
func TestPostgresInTxTakeover(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	r := pgClaim()
	r.Lease = 20 * time.Millisecond
	pgMustClaim(t, st, r, store.Claimed)
	tx := f.pgHold(t, r.ID, "state = state")
	pgPass(2 * r.Lease)
	pgMustClaim(t, st, pgRival(r), store.InProgress)
	pgWant(t, "rollback", tx.Rollback(t.Context()), nil)
	pgMustClaim(t, st, pgRival(r), store.Claimed)
}

// TestPostgresInTxOverHTTP: a handler behind the middleware stores its response with
// protocol.Payload, and its client and every retry get it.
func TestPostgresInTxOverHTTP(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL)")
	s := newPgInTx(t, f, server.URL(), pgInTxLease, false)
	guard, err := protocol.Over(s.engine, protocol.Config{Required: true})
	pgWant(t, "guard", err, nil)
	handler := func(w http.ResponseWriter, r *http.Request) {
		payload, err := protocol.Payload(r.Context(), protocol.Response{
			Status: http.StatusCreated,
			Header: protocol.NewHeader(protocol.Field{Name: "Location", Value: "/orders/7"}),
			Body:   []byte("order 7"),
		})
		if err == nil {
			err = s.run(r.Context(), string(payload), nothingBetween)
		}
		if err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	service := httptest.NewServer(reprisehttp.Middleware(guard, func(*http.Request) (string, error) { return "tenant", nil })(http.HandlerFunc(handler)))
	defer service.Close()
	for range 3 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, service.URL, strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", `"order"`)
		resp, err := service.Client().Do(req)
		pgWant(t, "post", err, nil)
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusCreated || resp.Header.Get("Location") != "/orders/7" || string(body) != "order 7" {
			t.Errorf("answered %d, Location %q, %q", resp.StatusCode, resp.Header.Get("Location"), body)
		}
	}
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
	if _, err := protocol.Payload(t.Context(), protocol.Response{Status: 200}); err == nil {
		t.Error("Payload outside of a handler made one")
	}
}

// TestPostgresInTxKills: sessions are terminated at random moments, leases run out, and
// each operation that is completed in its handler's own transaction has its effect
// once.
func TestPostgresInTxKills(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, sqlDB := range []bool{false, true} {
		f := pgSetup(t, server)
		f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL)")
		name := "in_tx_" + f.Config.Schema
		var services []*pgInTx
		for range 2 {
			services = append(services, newPgInTx(t, f, server.URL(), time.Second, sqlDB, labtest.MaxConns(6), labtest.SessionParam("application_name", name)))
		}
		var (
			operations atomic.Int64
			clients    sync.WaitGroup
		)
		stop := make(chan struct{})
		for client := range 6 {
			clients.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					operations.Add(1)
					key := fmt.Sprintf("%d-%d", client, n)
					deadline := time.Now().Add(time.Minute)
					for try := client; !services[try%2].try(t, key); try++ {
						if time.Now().After(deadline) {
							t.Errorf("no answer to %s within a minute", key)
							return
						}
						pgPass(rand.N(10 * time.Millisecond))
					}
				}
			})
		}
		for killed := 0; killed < 40; pgPass(rand.N(20 * time.Millisecond)) {
			killed += pgTerminate(t, f.Pool, "application_name = '"+name+"' AND state <> 'idle'")
		}
		close(stop)
		clients.Wait()
		for what, want := range map[string]int64{
			"SELECT count(*) FROM " + f.name("effects"):                                                          operations.Load(),
			"SELECT count(DISTINCT id) FROM " + f.name("effects"):                                                operations.Load(),
			"SELECT count(*) FROM " + f.records() + " JOIN " + f.name("effects") + " USING (id) WHERE state = 2": operations.Load(),
		} {
			if got := pgValue[int64](t, f.Pool, what); got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		t.Logf("database/sql %t: %d operations, 40 sessions killed, effects per key = 1", sqlDB, operations.Load())
	}
}

// try is one request of a client, and reports whether it was answered.
func (s *pgInTx) try(t *testing.T, key string) bool {
	begun, err := s.engine.Begin(t.Context(), reprise.Operation{Scope: "tenant", Key: key})
	if err != nil || begun.Outcome != reprise.Claimed {
		return err == nil && begun.Outcome == reprise.Replayed
	}
	if err := s.run(begun.Attempt.Context(), key, nothingBetween); err != nil {
		_ = begun.Attempt.Release()
		return false
	}
	_, _ = begun.Attempt.Complete(reprise.Completion{Payload: []byte(key)})
	return true
}
