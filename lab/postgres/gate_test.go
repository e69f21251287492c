package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
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
	s := &pgSlow{
		pgFixture: f,
		quick:     pgOn(labtest.NewPool(t, server.URL(), labtest.ExecMode(mode)), f.Config).Leased(t),
		slow:      pgOn(labtest.NewPool(t, server.URL(), labtest.SessionParam("application_name", "slow"), labtest.ExecMode(mode)), f.Config).Leased(t),
	}
	var err error
	s.keeper, err = labtest.NewPool(t, server.URL()).Acquire(t.Context())
	labtest.Must(t, err)
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

// gate closes the gate of a record, and returns its key and the function that opens it.
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
	labtest.Eventually(t, "the first call waits for its commit", func() bool {
		holder = pgValue[int](t, s.Pool, "SELECT coalesce(min(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"+
			" AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1", key)
		return holder != 0 || len(did) > 0
	})
	labtest.Eventually(t, "the record has ended", func() bool {
		return pgValue[int](t, s.Pool, "SELECT count(*) FROM "+s.records()+" WHERE id = $1 AND NOT ("+m.until+")", r.ID[:]) == 0
	})
	answer := call(m.second)
	labtest.Eventually(t, "the second call answers, or waits for the first", func() bool {
		return len(answer) > 0 || !m.impatient && pgValue[bool](t, s.Pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", holder)
	})
	open()
	return <-did, <-answer
}
