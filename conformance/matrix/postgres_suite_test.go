package matrix

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/servers"
	"github.com/reprise-go/reprise/core"
)

func TestPostgresConformance(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture {
		return pgSuite(pgSetup(tb, server, pgConns(4)), func(f *pgFixture, tb testing.TB) reprise.Store { return f.leased(tb) })
	})
}

func TestPostgresTransactionalConformance(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture { return pgTxSuite(pgSetup(tb, server, pgConns(16))) })
}

// TestPostgresConformanceInEveryMode runs the suite on both stores with each way that pgx has to send a statement.
func TestPostgresConformanceInEveryMode(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, mode := range pgModes {
		t.Run("mode="+mode.String(), func(t *testing.T) {
			t.Parallel()
			setup := func(tb testing.TB) *pgFixture {
				f := pgSetup(tb, server, pgConns(16), pgMode(mode))
				f.config.ExecMode = mode
				return f
			}
			t.Run("leased", func(t *testing.T) {
				conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture {
					return pgSuite(setup(tb), func(f *pgFixture, tb testing.TB) reprise.Store { return f.leased(tb) })
				})
			})
			t.Run("transactional", func(t *testing.T) {
				conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture { return pgTxSuite(setup(tb)) })
			})
		})
	}
}

// TestPostgresConformanceUnderStricterIsolation: a server whose default is not READ COMMITTED costs repetitions and nothing else.
func TestPostgresConformanceUnderStricterIsolation(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture {
				f := pgSetup(tb, server, pgConns(4), pgParam("default_transaction_isolation", string(level)))
				return pgSuite(f, func(f *pgFixture, tb testing.TB) reprise.Store { return f.leased(tb) })
			})
		})
	}
}

// pgSuite is the fixture of a store; each handle has the pool to itself or shares it, which makes no difference to the server.
func pgSuite(f *pgFixture, open func(*pgFixture, testing.TB) reprise.Store) conformance.StoreFixture {
	return conformance.StoreFixture{
		Open:    func(tb testing.TB) reprise.Store { return open(f, tb) },
		Advance: func(_ testing.TB, d time.Duration) { time.Sleep(d) },
		Corrupt: f.corrupt,
	}
}

func pgTxSuite(f *pgFixture) conformance.StoreFixture {
	fixture := pgSuite(f, func(f *pgFixture, tb testing.TB) reprise.Store { return f.transactional(tb) })
	fixture.Atomic = true
	fixture.Waivers = []conformance.Waiver{{
		Case:   "claim-mismatch-in-flight",
		Reason: "the fingerprint of an attempt in another process is not visible before its transaction commits: 409 instead of 422 until then",
	}}
	return fixture
}

// corrupt damages a row. The table's own checks refuse most damage, so they go first.
func (f *pgFixture) corrupt(tb testing.TB, id reprise.ID, how conformance.Corruption) {
	tb.Helper()
	change := ""
	switch how {
	case conformance.UnknownVersion:
		change = "version = 2"
	case conformance.UnknownState:
		change = "state = 7, payload = NULL"
	case conformance.Truncated:
		change = "fingerprint = substr(fingerprint, 1, 31)"
	case conformance.WrongType:
		tb.Skip("a column of a table has the type that it was made with")
	}
	f.exec(tb, `DO $$ DECLARE c name; BEGIN
		FOR c IN SELECT conname FROM pg_constraint WHERE conrelid = '`+f.records()+`'::regclass AND contype = 'c' LOOP
			EXECUTE format('ALTER TABLE `+f.records()+` DROP CONSTRAINT %I', c);
		END LOOP; END $$`)
	f.exec(tb, f.pgDamage(change), id[:])
}
