package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgInstants are the times of a row, and its fence.
type pgInstants struct {
	lease, valid, expires, created time.Time
	fence                          int64
}

// instants reads the times of a row in a transaction.
func (f *pgFixture) instants(ctx context.Context, tx pgx.Tx, id store.ID) (i pgInstants, err error) {
	err = tx.QueryRow(ctx, "SELECT lease_until, valid_until, expires_at, created_at, fence FROM "+f.records()+" WHERE id = $1", id[:]).
		Scan(&i.lease, &i.valid, &i.expires, &i.created, &i.fence)
	return i, err
}

// TestPostgresInstantsOfWrites: the lease, the validity, and the purge's index column
// count from the clock at which a statement writes. They depend neither on the beginning
// of its transaction, which may be long ago, nor on the row's earlier values. The indexed
// instant moves only where it has to. No other record is written.
func TestPostgresInstantsOfWrites(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	texts := f.statements(t, statements)
	ctx := t.Context()
	first := pgClaim()
	pgMustClaim(t, f.Leased(t), first, store.Claimed)
	bystander := pgClaim() // has the same owner, fence and times
	pgMustClaim(t, f.Leased(t), bystander, store.Claimed)

	const (
		lease, retention = 7 * time.Minute, 3 * time.Hour
		spare            = time.Hour
		horizon          = 2 * time.Hour
		us               = int64(time.Microsecond)
		brief            = 2 * time.Minute // a retention below the hour that the purge gives at most

		no     = ""
		live   = "state = 1, payload = NULL, lease_until = now() + interval '1 hour', valid_until = now() + interval '1 hour'"
		lapsed = "state = 1, payload = NULL, lease_until = now(), valid_until = now() + interval '1 hour'"
		over   = "state = 1, payload = NULL, lease_until = now(), valid_until = now()"
		done   = "state = 2, payload = 'former', lease_until = now(), valid_until = now() + interval '1 hour'"
		early  = ", expires_at = now() + interval '10 seconds'"
		enough = ", expires_at = now() + interval '3 hours 30 minutes'"
		late   = ", expires_at = now() + interval '1 day'"
		claims = "($1::bytea[], $2::bytea[], $3::bytea[], array[1], array[$4::interval], array[$5::bigint], array[$6::bigint], array['l'], array[false], array[''], false)"
	)
	r, mine := pgRival(first), first
	creates := func(retention time.Duration) []any {
		return []any{r.ID[:], r.Owner[:], r.Fingerprint[:], int64(1), lease, int64(retention) / us, int64(0), "l", false, ""}
	}
	rewrite := strings.Replace(texts["rewrite"], "$15::timestamptz", "coalesce($15::timestamptz, r.lease_until)", 1)
	rewrites := func(r store.ClaimRequest, attempt int, another bool) []any {
		return []any{
			r.ID[:], r.Owner[:], r.Fingerprint[:], int64(1), lease, int64(retention) / us, int64(0), "l", false, "",
			attempt, another, int64(5), 1, nil, first.Owner[:],
		}
	}
	inBatch := func(values ...any) []any {
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				values[i] = [][]byte{b}
			}
		}
		return values
	}
	batched := "SELECT * FROM " + f.name("reprise_records_completes_v1") + "($1, $2, array[''::bytea], array[$3::bigint], array[$4::bigint])"
	const asItWas = -1
	for name, test := range map[string]struct {
		row                            string
		statement                      string
		args                           []any
		lease, valid, expires, created time.Duration // after the write
		at                             time.Time     // the row's time of the claim, if it is an argument
		fence                          bool          // a new one, of the clock
	}{
		"claim": {
			no, texts["claim"], creates(retention), lease, retention, retention + spare, 0, time.Time{}, true,
		},
		"claim in a batch": {
			no, "SELECT * FROM " + f.name("reprise_records_claims_v1") + claims, inBatch(r.ID[:], r.Owner[:], r.Fingerprint[:], lease, int64(retention)/us, int64(0)),
			lease, retention, retention + spare, 0,
			time.Time{},
			true,
		},
		"brief claim":                                 {no, texts["claim"], creates(brief), lease, brief, 2 * brief, 0, time.Time{}, true},
		"claim again":                                 {live + early, rewrite, rewrites(mine, 2, false), lease, retention, retention + spare, asItWas, time.Time{}, false},
		"claim again, expires late":                   {live + enough, rewrite, rewrites(mine, 2, false), lease, retention, asItWas, asItWas, time.Time{}, false},
		"claim again, briefer":                        {live + late, rewrite, rewrites(mine, 2, false), lease, retention, retention + spare, asItWas, time.Time{}, false},
		"takeover":                                    {lapsed + early, rewrite, rewrites(r, 2, true), lease, retention, retention + spare, 0, time.Time{}, true},
		"takeover, expires late":                      {lapsed + enough, rewrite, rewrites(r, 2, true), lease, retention, asItWas, 0, time.Time{}, true},
		"takeover, briefer":                           {lapsed + late, rewrite, rewrites(r, 2, true), lease, retention, retention + spare, 0, time.Time{}, true},
		"claim of what is over":                       {over + early, rewrite, rewrites(r, 1, true), lease, retention, retention + spare, 0, time.Time{}, true},
		"completion":                                  {live + early, texts["complete"], []any{mine.ID[:], mine.Owner[:], []byte("x"), int64(retention) / us, int64(0)}, 0, retention, retention, asItWas, time.Time{}, false},
		"completion, expires late":                    {live + late, texts["complete"], []any{mine.ID[:], mine.Owner[:], []byte("x"), int64(retention) / us, int64(0)}, 0, retention, asItWas, asItWas, time.Time{}, false},
		"completion in a transaction":                 {live + early, texts["complete in a transaction"], []any{mine.ID[:], mine.Owner[:], []byte("x"), int64(retention) / us, int64(0)}, 0, retention, retention, asItWas, time.Time{}, false},
		"completion in a transaction, with a horizon": {live + late, texts["complete in a transaction"], []any{mine.ID[:], mine.Owner[:], []byte("x"), int64(retention) / us, int64(horizon) / us}, 0, retention + horizon, retention, asItWas, time.Time{}, false},
		"completion with a horizon":                   {live + late, texts["complete"], []any{mine.ID[:], mine.Owner[:], []byte("x"), int64(retention) / us, int64(horizon) / us}, 0, retention + horizon, retention, asItWas, time.Time{}, false},
		"batch with a horizon":                        {live + late, batched, inBatch(mine.ID[:], mine.Owner[:], int64(retention)/us, int64(horizon)/us), 0, retention + horizon, retention, asItWas, time.Time{}, false},
		"completion again":                            {done + early, texts["complete again"], []any{mine.ID[:], mine.Owner[:], mine.Owner[:]}, asItWas, asItWas, asItWas, asItWas, time.Time{}, false},
		"completion in a batch": {
			live + early, batched,
			inBatch(mine.ID[:], mine.Owner[:], int64(retention)/us, int64(0)), 0, retention, retention, asItWas,
			time.Time{},
			false,
		},
		"completion in a batch, expires late": {
			live + late, batched,
			inBatch(mine.ID[:], mine.Owner[:], int64(retention)/us, int64(0)), 0, retention, asItWas, asItWas,
			time.Time{},
			false,
		},
		"claim that waited": {
			live + early, texts["whole lease"],
			[]any{mine.ID[:], mine.Owner[:], int64(lease) / us, int64(retention) / us},
			lease, retention, retention + spare, asItWas,
			time.Time{},
			false,
		},
		"renewal": {
			live + early, texts["renew"],
			[]any{[][]byte{mine.ID[:]}, [][]byte{mine.Owner[:]}, []int64{int64(lease) / us}},
			lease, asItWas, asItWas, asItWas,
			time.Time{},
			false,
		},
		"renewal of what is over": {
			over + early, texts["renew"],
			[]any{[][]byte{mine.ID[:]}, [][]byte{mine.Owner[:]}, []int64{int64(lease) / us}},
			asItWas, asItWas, asItWas, asItWas,
			time.Time{},
			false,
		},
		"resolution": {
			lapsed + early, texts["resolve"],
			[]any{mine.ID[:], int64(5), []byte("x"), int64(retention) / us, false},
			0, retention, retention, asItWas,
			time.Time{},
			false,
		},
		"resolution, expires late": {
			lapsed + late, texts["resolve"],
			[]any{mine.ID[:], int64(5), []byte("x"), int64(retention) / us, false},
			0, retention, retention, asItWas,
			time.Time{},
			false,
		},
		"resolution with a horizon": {
			lapsed + late + ", horizon = 7200000000", texts["resolve"],
			[]any{mine.ID[:], int64(5), []byte("x"), int64(retention) / us, false},
			0, retention + horizon, retention, asItWas,
			time.Time{},
			false,
		},
		"resolution for a shorter time": {
			lapsed + late, texts["resolve"],
			[]any{mine.ID[:], int64(5), []byte("x"), int64(brief) / us, false},
			0, asItWas, brief, asItWas,
			time.Time{},
			false,
		},
	} {
		f.pgUndone(t, name, func(tx pgx.Tx) error {
			setup := &pgx.Batch{}
			if test.row == no {
				setup.Queue("DELETE FROM "+f.records()+" WHERE id = $1", first.ID[:])
			} else {
				for _, id := range [][]byte{first.ID[:], bystander.ID[:]} {
					setup.Queue(f.pgDamage("owner = $2, fence = 5, created_at = now() - interval '1 hour', "+test.row), id, first.Owner[:])
				}
			}
			if err := tx.SendBatch(ctx, setup).Close(); err != nil {
				return err
			}
			places, err := f.places(ctx, tx)
			if err != nil {
				return err
			}
			var before pgInstants
			if test.row != no {
				var err error
				if before, err = f.instants(ctx, tx, first.ID); err != nil {
					return err
				}
			}
			clock := func() (at time.Time, err error) {
				err = tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at)
				return at, err
			}
			from, err := clock()
			if err != nil {
				return err
			}
			rows, err := tx.Query(ctx, test.statement, test.args...)
			if err != nil {
				return err
			}
			rows.Close()
			if err := rows.Err(); err != nil {
				return err
			}
			to, err := clock()
			if err != nil {
				return err
			}
			got, err := f.instants(ctx, tx, first.ID)
			if err != nil {
				return err
			}
			for _, i := range []struct {
				what        string
				got, before time.Time
				want        time.Duration
			}{
				{"lease", got.lease, before.lease, test.lease},
				{"validity", got.valid, before.valid, test.valid},
				{"room for the purge", got.expires, before.expires, test.expires},
				{"claim", got.created, before.created, test.created},
			} {
				low, high := from.Add(i.want), to.Add(i.want)
				switch {
				case i.want == asItWas:
					low, high = i.before, i.before
				case i.what == "claim" && !test.at.IsZero():
					low, high = test.at, test.at
				}
				if i.got.Before(low) || i.got.After(high) {
					t.Errorf("%s: the %s is %v, want %v to %v", name, i.what, i.got, low, high)
				}
			}
			if after, err := f.places(ctx, tx); err != nil || after[bystander.ID] != places[bystander.ID] {
				t.Errorf("%s: another record was written (%v)", name, err)
			}
			if test.fence && got.fence != got.created.UnixMicro() || !test.fence && got.fence != 5 {
				t.Errorf("%s: fence %d of a claim at %d", name, got.fence, got.created.UnixMicro())
			}
			return nil
		})
	}
}

// TestPostgresClocksOfResults: a record that a statement saw comes with the start of its
// transaction, which is before its snapshot: by a later clock a lease that was renewed in
// between would have lapsed. The later decisions of a claim come with a later clock.
func TestPostgresClocksOfResults(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	texts := f.statements(t, statements)
	r, fresh := pgClaim(), pgClaim()
	pgMustClaim(t, f.Leased(t), r, store.Claimed)
	ctx := t.Context()
	const interval = "interval '1 minute'"
	batch := func(existing bool) string {
		return "SELECT * FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[1], array[" +
			interval + "], array[60000000], array[0], array['l'], array[false], array[''], " + map[bool]string{true: "true", false: "false"}[existing] + ")"
	}
	create := func(r store.ClaimRequest) []any {
		return []any{r.ID[:], r.Owner[:], r.Fingerprint[:], int64(1), time.Minute, int64(time.Minute / time.Microsecond), int64(0), "l", false, ""}
	}
	for name, test := range map[string]struct {
		statement, column string
		args              []any
		late              bool // the clock of the result is that of its writing
	}{
		"claim of a record":                    {texts["claim"], "clock", create(r), false},
		"claim that creates":                   {texts["claim"], "clock", create(fresh), true},
		"claim of a record in a batch":         {batch(false), "clock", create(r)[:3], false},
		"claim of a record in a batch, a look": {batch(true), "clock", create(r)[:3], false},
		"claim that creates in a batch":        {batch(false), "clock", create(fresh)[:3], true},
		"inspection":                           {texts["inspect"], "now", create(r)[:1], false},
		"listing":                              {texts["list"], "now", []any{[]byte{}, 62, "", int64(0), int64(10)}, false},
	} {
		f.pgUndone(t, name, func(tx pgx.Tx) error {
			var began, from time.Time
			if err := tx.QueryRow(ctx, "SELECT now(), clock_timestamp()").Scan(&began, &from); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, test.statement, test.args...)
			if err != nil {
				return err
			}
			all, err := pgx.CollectRows(rows, pgx.RowToMap)
			if err != nil {
				return err
			}
			at, ok := all[0][test.column].(time.Time)
			if !ok || test.late && at.Before(from) || !test.late && !at.Equal(began) {
				t.Errorf("%s: the clock is %v in a transaction that began at %v, and at %v", name, at, began, from)
			}
			return nil
		})
	}
}
