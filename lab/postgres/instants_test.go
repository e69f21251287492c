package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgInstants are the times of a row, and its fence.
type pgInstants struct{ lease, replay, valid, due, claimed, fence int64 }

// instants reads the times of a row in a transaction.
func (f *pgFixture) instants(t *testing.T, tx pgx.Tx, id store.ID) (i pgInstants) {
	t.Helper()
	labtest.Must(t, tx.QueryRow(t.Context(), "SELECT lease_until, replay_until, valid_until, due_at, claimed_at, fence FROM "+f.records()+" WHERE id = $1", id[:]).
		Scan(&i.lease, &i.replay, &i.valid, &i.due, &i.claimed, &i.fence))
	return i
}

// TestPostgresInstantsOfWrites: with the statements that are PostgreSQL's own, the lease,
// the validity, and the purge's index column count from the clock at which a statement
// writes. They depend neither on the beginning of its transaction, which may be long ago,
// nor on the row's earlier values. The indexed instant moves only where it has to. No
// other record is written.
func TestPostgresInstantsOfWrites(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	texts := f.statements(t, statements)
	mine, bystander := labtest.NewClaim(), labtest.NewClaim() // which has the same owner, fence and times
	labtest.WantClaim(t, f.Leased(t), mine, store.Claimed)
	labtest.WantClaim(t, f.Leased(t), bystander, store.Claimed)

	const (
		lease, retention = 7 * time.Minute, 3 * time.Hour
		horizon          = 2 * time.Hour
		brief            = 2 * time.Minute // a retention below the hour that the purge gives at most

		asItWas = -1
		no      = ""
		live    = "state = 1, payload = NULL, lease_until = " + pgNow + " + " + pgHour + ", valid_until = " + pgNow + " + " + pgHour
		over    = "state = 1, payload = NULL, lease_until = " + pgNow + ", valid_until = " + pgNow
		early   = ", due_at = " + pgNow + " + 10000000"
		late    = ", due_at = " + pgNow + " + 24 * " + pgHour
	)
	us := time.Duration.Microseconds
	claims := "SELECT * FROM " + f.name("reprise_records_claims_v1") +
		"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::bigint], array[$6::bigint], array[$7::text], array[$8::smallint], array[$9::text], false)"
	creates := func(retention, horizon time.Duration) []any {
		return []any{mine.ID[:], mine.Owner[:], mine.Fingerprint[:], us(lease), us(retention), us(horizon), "l", int16(0), ""}
	}
	completed := "SELECT * FROM " + f.name("reprise_records_completes_v1") + "(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::bigint])"
	completes := func(horizon time.Duration) []any {
		return []any{mine.ID[:], mine.Owner[:], []byte("x"), us(retention), us(horizon)}
	}
	renews := []any{[][]byte{mine.ID[:]}, [][]byte{mine.Owner[:]}, []int64{us(lease)}}
	type instants struct{ lease, replay, valid, due, claimed time.Duration } // after the write
	tests := map[string]struct {
		row       string
		statement string
		args      []any
		want      instants
	}{
		"renewal":                 {live + early, texts["renew"], renews, instants{lease, asItWas, asItWas, asItWas, asItWas}},
		"renewal of what is over": {over + early, texts["renew"], renews, instants{asItWas, asItWas, asItWas, asItWas, asItWas}},
	}
	for name, claim := range map[string]string{"": texts["claim"], ", in a batch": claims} {
		test := tests["renewal"]
		test.row, test.statement, test.args = no, claim, creates(retention, 0)
		test.want = instants{lease, asItWas, retention, retention + time.Hour, 0}
		tests["claim"+name] = test
		test.args, test.want.valid, test.want.due = creates(brief, 0), brief, 2*brief
		tests["brief claim"+name] = test
		test.args, test.want.valid, test.want.due = creates(retention, horizon), retention+horizon, retention+horizon+time.Hour
		tests["claim with a horizon"+name] = test
	}
	for name, complete := range map[string]string{"": texts["complete"], " in a batch": completed, " in a transaction": texts["complete in a transaction"]} {
		test := tests["renewal"]
		test.statement, test.args = complete, completes(0)
		test.want = instants{0, retention, retention, retention, asItWas}
		tests["completion"+name] = test
		test.row, test.want.due = live+late, asItWas
		tests["completion that lies late enough"+name] = test
		test.args, test.want.valid, test.want.due = completes(horizon), retention+horizon, retention
		tests["completion with a horizon"+name] = test
	}
	for name, test := range tests {
		f.pgUndone(t, func(tx pgx.Tx) {
			setup := &pgx.Batch{}
			if test.row == no {
				setup.Queue("DELETE FROM "+f.records()+" WHERE id = $1", mine.ID[:])
			} else {
				for _, id := range [][]byte{mine.ID[:], bystander.ID[:]} {
					setup.Queue(f.pgDamage("owner = $2, fence = 5, claimed_at = "+pgNow+" - "+pgHour+", "+test.row), id, mine.Owner[:])
				}
			}
			labtest.Must(t, tx.SendBatch(t.Context(), setup).Close())
			places := f.places(t, tx)
			before := pgInstants{}
			if test.row != no {
				before = f.instants(t, tx, mine.ID)
			}
			from := pgValue[int64](t, tx, "SELECT "+pgLate)
			pgExec(t, tx, test.statement, test.args...)
			to := pgValue[int64](t, tx, "SELECT "+pgLate)
			got := f.instants(t, tx, mine.ID)
			for _, i := range []struct {
				what        string
				got, before int64
				want        time.Duration
			}{
				{"lease", got.lease, before.lease, test.want.lease},
				{"replay", got.replay, before.replay, test.want.replay},
				{"validity", got.valid, before.valid, test.want.valid},
				{"room for the purge", got.due, before.due, test.want.due},
				{"claim", got.claimed, before.claimed, test.want.claimed},
			} {
				low, high := from+us(i.want), to+us(i.want)
				if i.want == asItWas {
					low, high = i.before, i.before
				}
				if i.got < low || i.got > high {
					t.Errorf("%s: the %s is %v, want %v to %v", name, i.what, i.got, low, high)
				}
			}
			if f.places(t, tx)[bystander.ID] != places[bystander.ID] {
				t.Errorf("%s: another record was written", name)
			}
			if claims := test.row == no; claims && got.fence != got.claimed || !claims && got.fence != 5 {
				t.Errorf("%s: fence %d of a claim at %d", name, got.fence, got.claimed)
			}
		})
	}
}

// TestPostgresClocksOfResults: a record that a statement saw comes with the start of its
// transaction, which is before its snapshot: by a later clock a lease that was renewed in
// between would have lapsed. A record that a claim created comes with a later clock.
func TestPostgresClocksOfResults(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	texts := f.statements(t, statements)
	r, fresh := labtest.NewClaim(), labtest.NewClaim()
	labtest.WantClaim(t, f.Leased(t), r, store.Claimed)
	batch := func(existing string) string {
		return "SELECT clock FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[$1::bytea], array[$1::bytea], array[60000000::bigint], " +
			"array[60000000::bigint], array[0::bigint], array['l'], array[0::smallint], array[''], " + existing + ")"
	}
	for name, test := range map[string]struct {
		statement string
		id        store.ID
		late      bool // the clock of the result is that of its writing
	}{
		"look":                                 {"SELECT l.at FROM (" + texts["look"] + ") AS l (at)", r.ID, false},
		"claim of a record in a batch":         {batch("false"), r.ID, false},
		"claim of a record in a batch, a look": {batch("true"), r.ID, false},
		"claim that creates in a batch":        {batch("false"), fresh.ID, true},
	} {
		f.pgUndone(t, func(tx pgx.Tx) {
			var began, from, at int64
			labtest.Must(t, tx.QueryRow(t.Context(), "SELECT "+pgNow+", "+pgLate).Scan(&began, &from))
			labtest.Must(t, tx.QueryRow(t.Context(), test.statement, test.id[:]).Scan(&at))
			if test.late && at < from || !test.late && at != began {
				t.Errorf("%s: the clock is %d in a transaction that began at %d, and at %d", name, at, began, from)
			}
		})
	}
}
