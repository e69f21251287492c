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
			setup := labtest.SetupPostgres(t, server)
			c := setup.Config
			schema, table := pgx.Identifier{c.Schema}.Sanitize(), pgx.Identifier{c.Schema, reprisepg.DefaultTable}.Sanitize()
			if _, err := setup.Pool.Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION %[1]s.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF random() < 0.33 THEN PERFORM pg_sleep(0.025 * random()); END IF;
					RETURN NULL;
				END $$;
				CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON %[2]s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %[1]s.late()`,
				schema, table), pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			checked(t, pgDeployment(t, server.URL(), c, name == "in a transaction", false, labtest.ExecMode(mode)), everything...)
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

// TestModelKnowsStandstills: a server that stands still between the clock of a claim
// and its snapshot finds a record that was claimed, and released, in between. The fence
// is one more than that of this record then, and the lease counts from the clock. And a
// renewal that finds the row of its owner's record, which has ended, locked by the
// claim that begins it anew does not wait; another owner's record explains no busy
// renewal.
func TestModelKnowsStandstills(t *testing.T) {
	t.Parallel()
	claims := func(owner byte, lease, retention time.Duration) input {
		return input{kind: claim, owner: store.Owner{owner}, lease: lease, policy: store.Policy{Retention: retention}, takeover: true}
	}
	granted := func(fence uint64, began window) output {
		return output{answer: answer{outcome: store.Claimed, attempt: 1}, fence: fence, began: began}
	}
	stands := func(first output, fence uint64) []porcupine.Operation {
		began := time.Duration(fence) * time.Microsecond
		return []porcupine.Operation{
			op(0, claims(1, 30*ms, time.Hour), first, 6, 8), op(0, input{kind: release, owner: store.Owner{1}}, output{}, 9, 10),
			op(1, claims(2, 30*ms, time.Hour), granted(fence, window{began, began}), 1, 20),
			op(0, claims(3, 30*ms, time.Hour), output{answer: answer{outcome: store.InProgress}, measured: true, remaining: 10 * ms}, 21, 22),
		}
	}
	busy := func(retention, from, to time.Duration) []porcupine.Operation {
		return []porcupine.Operation{
			op(0, claims(1, 5*ms, 5*ms), granted(1, window{}), 0, 1), op(1, claims(2, 5*ms, retention), granted(2, window{}), 20, 30),
			op(0, input{kind: renew, owner: store.Owner{1}, lease: 5 * ms}, output{answer: answer{renewal: store.RenewBusy}}, from, to),
		}
	}
	first := granted(7000, window{7 * ms, 7 * ms})
	for name, test := range map[string]struct {
		history   []porcupine.Operation
		explained bool
	}{
		"the fence is one more":                   {stands(first, 7001), true},
		"the fence is a clock":                    {stands(first, 7002), false},
		"the fence of the first claim is unknown": {stands(output{unknown: true}, 7001), true},
		"busy beside the next claim":              {busy(5*ms, 22, 24), true},
		"busy after the next claim":               {busy(time.Hour, 31, 32), false},
	} {
		if got := porcupine.CheckOperations(model(), test.history); got != test.explained {
			t.Errorf("%s: explained %t", name, got)
		}
	}
}
