package lincheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresThatCommitsSlowlyIsLinearizable: a commit that waits for a disk or a
// standby puts much time between the decision of a statement and its effect. A third of
// the commits take up to 25 ms: the server runs deferred triggers in them.
func TestPostgresThatCommitsSlowlyIsLinearizable(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for name, mode := range map[string]pgx.QueryExecMode{
		"prepared": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "in a transaction": pgx.QueryExecModeCacheStatement,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if mode == pgx.QueryExecModeExec {
				labtest.Breadth(t, further)
			}
			c := reprisepg.Config{Schema: labtest.SetupPostgres(t, server).Config.Schema}
			setup := labtest.NewPool(t, server.URL(), labtest.MaxConns(2))
			schema, table := pgx.Identifier{c.Schema}.Sanitize(), pgx.Identifier{c.Schema, reprisepg.DefaultTable}.Sanitize()
			if _, err := setup.Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION %[1]s.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF random() < 0.33 THEN PERFORM pg_sleep(0.025 * random()); END IF;
					RETURN NULL;
				END $$;
				CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON %[2]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.late()`,
				schema, table), pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			checked(t, pgProcesses(t, server.URL(), c, name == "in a transaction", labtest.ExecMode(mode)), everything...)
		})
	}
}

// TestMySQLThatStandsStillIsLinearizable: a server that is stopped for moments puts time
// between the clock of a statement and its snapshot.
func TestMySQLThatStandsStillIsLinearizable(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	raw := mysqlserver.New(t, server)
	d := &deployment{clock: sqlClock}
	for _, level := range []string{"READ-COMMITTED", "SERIALIZABLE"} {
		d.stores = append(d.stores, mysqlserver.Store(t, raw+"?tx_isolation='"+level+"'"))
	}
	checkedRuns(t, func(t *testing.T, seed uint64) *recorder {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var stops sync.WaitGroup
		defer stops.Wait()
		defer cancel()
		stops.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(rand.N(150 * time.Millisecond)) //nolint:forbidigo // the server has its own clock
				server.Pause(t)
				time.Sleep(rand.N(60 * time.Millisecond)) //nolint:forbidigo // likewise
				server.Resume(t)
			}
		})
		return history(t, d, seed)
	}, everything...)
}

const ms = time.Millisecond

// op is an operation of a history.
func op(client int, in input, out output, from, to time.Duration) porcupine.Operation {
	out.at = window{from * ms, to * ms}
	return porcupine.Operation{ClientId: client, Input: in, Call: int64(out.at.from), Output: out, Return: int64(out.at.to)}
}

// TestLeaseCountsFromTheClockOfItsClaim: a server that stands still between the clock of
// a claim and its snapshot finds a record that was claimed, and released, in between. The
// fence is one more than that of this record then, and the lease counts from the clock.
func TestLeaseCountsFromTheClockOfItsClaim(t *testing.T) {
	t.Parallel()
	claims := func(owner byte) input {
		return input{kind: claim, owner: store.Owner{owner}, lease: 30 * ms, policy: store.Policy{Retention: time.Hour}, takeover: true}
	}
	granted := func(fence uint64) output {
		began := time.Duration(fence) * time.Microsecond
		return output{answer: answer{outcome: store.Claimed, attempt: 1}, fence: fence, began: window{began, began}}
	}
	for name, test := range map[string]struct {
		first     output
		fence     uint64
		explained bool
	}{
		"the fence is one more":                   {granted(7000), 7001, true},
		"the fence is a clock":                    {granted(7000), 7002, false},
		"the fence of the first claim is unknown": {output{unknown: true}, 7001, true},
	} {
		if got := porcupine.CheckOperations(model(), []porcupine.Operation{
			op(0, claims(1), test.first, 6, 8), op(0, input{kind: release, owner: store.Owner{1}}, output{}, 9, 10),
			op(1, claims(2), granted(test.fence), 1, 20),
			op(0, claims(3), output{answer: answer{outcome: store.InProgress}, measured: true, remaining: 10 * ms}, 21, 22),
		}); got != test.explained {
			t.Errorf("%s: explained %t", name, got)
		}
	}
}

// TestBusyRenewalIsExplained: a renewal that finds the row of its owner's record, which
// has ended, locked by the claim that begins it anew does not wait. Another owner's
// record explains no busy renewal.
func TestBusyRenewalIsExplained(t *testing.T) {
	t.Parallel()
	a, b := store.Owner{1}, store.Owner{2}
	brief, long := store.Policy{Retention: 5 * ms}, store.Policy{Retention: time.Hour}
	claims := func(owner store.Owner, p store.Policy) input {
		return input{kind: claim, owner: owner, lease: 5 * ms, policy: p, takeover: true}
	}
	granted := func(fence uint64) output {
		return output{answer: answer{outcome: store.Claimed, attempt: 1}, fence: fence}
	}
	busy, renewal := output{answer: answer{renewal: store.RenewBusy}}, input{kind: renew, owner: a, lease: 5 * ms}
	for name, test := range map[string]struct {
		history   []porcupine.Operation
		explained bool
	}{
		"busy beside the next claim": {[]porcupine.Operation{
			op(0, claims(a, brief), granted(1), 0, 1), op(1, claims(b, brief), granted(2), 20, 30), op(0, renewal, busy, 22, 24),
		}, true},
		"busy after the next claim": {[]porcupine.Operation{
			op(0, claims(a, brief), granted(1), 0, 1), op(1, claims(b, long), granted(2), 20, 30), op(0, renewal, busy, 31, 32),
		}, false},
	} {
		if got := porcupine.CheckOperations(model(), test.history); got != test.explained {
			t.Errorf("%s: explained %t", name, got)
		}
	}
}
