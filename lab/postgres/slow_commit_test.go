package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// pgSlow is two stores over one table. Each commit of the slow one waits for the gate of
// its record: the server runs deferred triggers in a commit, before the transaction takes
// effect.
type pgSlow struct {
	*pgFixture

	quick, slow store.Store
	mu          sync.Mutex
	keeper      *pgxpool.Conn // holds the gates
}

func newPgSlow(t *testing.T, server *servers.PostgresServer, f *pgFixture, mode pgx.QueryExecMode) *pgSlow {
	t.Helper()
	c := f.Config
	c.ExecMode = mode
	s := &pgSlow{
		pgFixture: f,
		quick:     pgOn(labtest.NewPool(t, server.URL()), c).Leased(t),
		slow:      pgOn(labtest.NewPool(t, server.URL(), labtest.SessionParam("application_name", "slow")), c).Leased(t),
	}
	var err error
	s.keeper, err = labtest.NewPool(t, server.URL()).Acquire(t.Context())
	pgWant(t, "acquire", err, nil)
	t.Cleanup(s.keeper.Release)
	return s
}

// pgGates returns a fixture whose table has the gates.
func pgGates(t *testing.T, server *servers.PostgresServer) *pgFixture {
	t.Helper()
	f := pgSetup(t, server)
	f.exec(t, fmt.Sprintf(`CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('application_name') = 'slow' THEN
				PERFORM pg_advisory_xact_lock_shared(('x' || encode(substr(coalesce(NEW.id, OLD.id), 1, 8), 'hex'))::bit(64)::bigint);
			END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER gate AFTER INSERT OR UPDATE OR DELETE ON %[2]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s()`,
		f.name("gate"), f.records()), pgx.QueryExecModeSimpleProtocol)
	return f
}

// gate closes the gate of a record, and returns its key and what opens it.
func (s *pgSlow) gate(t *testing.T, id store.ID) (key int64, open func()) {
	t.Helper()
	key = int64(binary.BigEndian.Uint64(id[:8]))
	keep := func(function string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, err := s.keeper.Exec(context.WithoutCancel(t.Context()), "SELECT "+function+"($1)", key); err != nil {
			t.Error(err)
		}
	}
	keep("pg_advisory_lock")
	return key, sync.OnceFunc(func() { keep("pg_advisory_unlock") })
}

// pgMeeting is two calls on one record: the first has found the record and waits for its
// commit when the record has ended by every snapshot, and only then the second begins.
type pgMeeting struct {
	begin         func(t *testing.T, span time.Duration) store.ClaimRequest // of a record that ends after span
	first, second func(ctx context.Context, r store.ClaimRequest) string
	late          string // the answer of a first call that came too late
	until         string // the condition on the row that has ended
	impatient     bool   // the second call answers while the first waits
}

// play makes the calls, and returns their answers and the record. It repeats them with a
// longer span where the first was too late to find the record.
func (s *pgSlow) play(t *testing.T, m *pgMeeting) (first, second string, r store.ClaimRequest) {
	t.Helper()
	for span := 150 * time.Millisecond; span < time.Minute; span *= 2 {
		r = m.begin(t, span)
		if first, second = s.once(t, m, r); first != m.late {
			return first, second, r
		}
	}
	t.Fatal("the first call always came too late")
	return "", "", r
}

// once makes the calls on the record of r.
func (s *pgSlow) once(t *testing.T, m *pgMeeting, r store.ClaimRequest) (first, second string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	key, open := s.gate(t, r.ID)
	defer open()
	call := func(f func(context.Context, store.ClaimRequest) string) chan string {
		answer := make(chan string, 1)
		go func() { answer <- f(ctx, r) }()
		return answer
	}
	did := call(m.first)
	var holder int
	pgEventually(t, "the first call waits for its commit", func() bool {
		holder = pgValue[int](t, s.Pool, "SELECT coalesce(min(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"+
			" AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1", key)
		return holder != 0 || len(did) > 0
	})
	pgEventually(t, "the record has ended", func() bool {
		return pgValue[int](t, s.Pool, "SELECT count(*) FROM "+s.records()+" WHERE id = $1 AND NOT ("+m.until+")", r.ID[:]) == 0
	})
	answer := call(m.second)
	pgEventually(t, "the second call answers, or waits for the first", func() bool {
		return len(answer) > 0 || !m.impatient && pgValue[bool](t, s.Pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", holder)
	})
	open()
	return <-did, <-answer
}

// pgCalls are the calls of a store, each with its answer in a word.
func pgCalls(st store.Store) map[string]func(ctx context.Context, r store.ClaimRequest) string {
	word := func(err error, otherwise string) string {
		switch {
		case err == nil:
			return otherwise
		case errors.Is(err, store.ErrLeaseLost):
			return "lost"
		case errors.Is(err, store.ErrBusy):
			return "busy"
		case errors.Is(err, store.ErrUnknown):
			return "unknown"
		}
		return err.Error()
	}
	policy := store.Policy{Retention: time.Hour}
	claim := func(ctx context.Context, r store.ClaimRequest) string {
		r.Lease, r.Policy = time.Minute, policy
		got, err := st.Claim(ctx, r)
		return word(err, fmt.Sprint(got.Outcome, " ", got.Attempt))
	}
	return map[string]func(context.Context, store.ClaimRequest) string{
		"renew": func(ctx context.Context, r store.ClaimRequest) string {
			got, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: time.Minute}})
			return word(err, fmt.Sprint(got))
		},
		"complete": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Complete(ctx, store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte("p"), Policy: policy}), "done")
		},
		"unknown": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "why"}), "done")
		},
		"release": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Release(ctx, r.ID, r.Owner), "done")
		},
		"claim":        claim,
		"rival claims": func(ctx context.Context, r store.ClaimRequest) string { return claim(ctx, pgRival(r)) },
	}
}

// pgSlowModes are the ways in which the statements of a request are sent.
var pgSlowModes = map[string]pgx.QueryExecMode{"prepared": 0, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol}

const (
	pgOver   = "valid_until <= clock_timestamp() AND lease_until <= clock_timestamp()"
	pgLapsed = "lease_until <= clock_timestamp()"
)

// TestPostgresSlowCommits: a call that finds the record before its end, and commits after
// it, has taken place for every call that begins in between. None answers by its snapshot
// that the record has ended: it waits for the first call, or says that it does not know.
func TestPostgresSlowCommits(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgGates(t, server)
	const took, busy, none = "done", "busy", "[busy]"
	for mode, exec := range pgSlowModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newPgSlow(t, server, f, exec)
			slow, quick := pgCalls(s.slow), pgCalls(s.quick)
			var group sync.WaitGroup
			few := make(chan struct{}, 4) // fewer calls than are combined
			for _, test := range []struct {
				until, first, did, second, want string
			}{
				{pgOver, "renew", "[renewed]", "complete", took},
				{pgOver, "renew", "[renewed]", "unknown", took},
				{pgOver, "renew", "[renewed]", "release", took},
				{pgOver, "renew", "[renewed]", "renew", none},
				{pgOver, "renew", "[renewed]", "claim", busy},
				{pgOver, "renew", "[renewed]", "rival claims", busy},
				{pgOver, "claim", "claimed 1", "complete", took},
				{pgOver, "claim", "claimed 1", "unknown", took},
				{pgOver, "claim", "claimed 1", "release", took},
				{pgOver, "claim", "claimed 1", "renew", none},
				{pgOver, "claim", "claimed 1", "rival claims", busy},
				{pgOver, "complete", took, "complete", took},
				{pgOver, "complete", took, "unknown", "lost"},
				{pgOver, "complete", took, "release", took},
				{pgOver, "complete", took, "renew", none},
				{pgOver, "complete", took, "rival claims", busy},
				{pgOver, "unknown", took, "unknown", took},
				{pgOver, "unknown", took, "complete", "lost"},
				{pgOver, "unknown", took, "renew", none},
				{pgOver, "unknown", took, "rival claims", busy},
				{pgLapsed, "renew", "[renewed]", "rival claims", "in-progress 0"},
				{pgLapsed, "complete", took, "rival claims", "in-progress 0"},
				{pgLapsed, "unknown", took, "rival claims", "in-progress 0"},
				{pgLapsed, "release", took, "rival claims", "in-progress 0"},
			} {
				few <- struct{}{}
				group.Go(func() {
					defer func() { <-few }()
					t.Run(fmt.Sprintf("%s, then %s, of a record that is %s", test.first, test.second, map[string]string{pgOver: "over", pgLapsed: "lapsed"}[test.until]), func(t *testing.T) {
						first, second, _ := s.play(t, &pgMeeting{
							begin: func(t *testing.T, span time.Duration) store.ClaimRequest {
								t.Helper()
								r := pgClaim()
								r.Lease = span
								if test.until == pgOver {
									r.Retention = span
								}
								pgMustClaim(t, s.quick, r, store.Claimed)
								f.exec(t, f.pgDamage("retention = 3600000000"), r.ID[:]) // of an outcome that is unknown
								return r
							},
							first: slow[test.first], second: quick[test.second], late: map[bool]string{true: "[lost]", false: "lost"}[test.first == "renew"], until: test.until,
						})
						if first != test.did || second != test.want {
							t.Errorf("%s and %s, want %s and %s", first, second, test.did, test.want)
						}
					})
				})
			}
			group.Wait()
		})
	}
}

// TestPostgresInTxMeetsASlowCommit: so does a completion in the handler's transaction.
func TestPostgresInTxMeetsASlowCommit(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgGates(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL)")
	s := newPgSlow(t, server, f, 0)
	for form, sqlDB := range map[string]bool{"pgx": false, "database/sql": true} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			handler := newPgInTx(t, f, server.URL(), pgInTxLease, sqlDB)
			var attempt *reprise.Attempt
			did, got, _ := s.play(t, &pgMeeting{
				begin: func(t *testing.T, span time.Duration) store.ClaimRequest {
					t.Helper()
					begun, err := handler.engine.Begin(t.Context(), reprise.Operation{Scope: form, Key: span.String()})
					pgWant(t, "begin", err, nil)
					attempt = begun.Attempt
					r := store.ClaimRequest{ID: attempt.ID()}
					r.Owner = store.Owner(pgValue[[]byte](t, f.Pool, "SELECT owner FROM "+f.records()+" WHERE id = $1", r.ID[:]))
					until := fmt.Sprintf("clock_timestamp() + interval '%d ms'", span.Milliseconds())
					f.exec(t, f.pgDamage("lease_until = "+until+", valid_until = "+until), r.ID[:])
					return r
				},
				first: pgCalls(s.slow)["renew"], late: "[lost]", until: pgOver,
				second: func(context.Context, store.ClaimRequest) string {
					return fmt.Sprint(handler.run(attempt.Context(), "answer", nothingBetween)) //nolint:contextcheck // a handler has the context of its attempt
				},
			})
			if did != "[renewed]" || got != "<nil>" {
				t.Fatalf("%s and %s, want [renewed] and <nil>", did, got)
			}
			result, err := attempt.Complete(reprise.Completion{Payload: []byte("answer")})
			if err != nil || result.End != reprise.EndRecorded {
				t.Errorf("complete with the same answer: %v, %v", result, err)
			}
		})
	}
}
