package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// TestPostgresLostRacesAreRepeated: a statement that PostgreSQL cannot serialize, or that
// it ends to resolve a deadlock, runs again, eight times at most. Then its caller gets
// ErrNotApplied. Any other failure is not repeated.
func TestPostgresLostRacesAreRepeated(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	st := f.Leased(t)
	for _, test := range []struct {
		code        string
		lost, tries int64 // how many tries fail, and how many there are
		want        error
	}{
		{"40001", 1, 2, nil},
		{"40001", 7, 8, nil},
		{"40P01", 7, 8, nil},
		{"40001", 100, 8, store.ErrUnavailable},
		{"40P01", 100, 8, store.ErrUnavailable},
		{"57014", 1, 1, store.ErrUnavailable},
	} {
		f.exec(t, fmt.Sprintf(`DROP SEQUENCE IF EXISTS %[1]s; CREATE SEQUENCE %[1]s;
			CREATE OR REPLACE FUNCTION %[2]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('%[1]s') <= %[3]d THEN RAISE EXCEPTION 'lost' USING ERRCODE = '%[4]s'; END IF;
				RETURN OLD;
			END $$;
			CREATE OR REPLACE TRIGGER lost BEFORE DELETE ON %[5]s FOR EACH ROW EXECUTE FUNCTION %[2]s()`,
			f.name("tries"), f.name("lose"), test.lost, test.code, f.records()), pgx.QueryExecModeSimpleProtocol)
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		ctx, cancel := pgCall(t)
		err := st.Release(ctx, r.ID, r.Owner)
		cancel()
		pgWant(t, "release", err, test.want)
		if tries := pgValue[int64](t, f.Pool, "SELECT last_value FROM "+f.name("tries")); tries != test.tries {
			t.Errorf("%s, lost %d times: %d tries, want %d", test.code, test.lost, tries, test.tries)
		}
		if raced := test.tries == 8 && test.want != nil; raced != (err != nil && strings.Contains(err.Error(), "changed the record each time")) {
			t.Errorf("%s, lost %d times: %v", test.code, test.lost, err)
		}
	}
}
