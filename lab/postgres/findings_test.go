package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgFinding returns the finding of code; the zero one where there is none.
func pgFinding(t *testing.T, st store.Checker, code string) store.Finding {
	t.Helper()
	list := pgCheck(t, st)
	if i := slices.IndexFunc(list, func(f store.Finding) bool { return f.Code == code }); i >= 0 {
		return list[i]
	}
	return store.Finding{}
}

// pgCheck returns the findings of a check, without the one that every test server has.
func pgCheck(t *testing.T, st store.Checker) []store.Finding {
	t.Helper()
	ctx, cancel := labtest.Call(t)
	defer cancel()
	list, err := st.Check(ctx)
	labtest.Must(t, err)
	return slices.DeleteFunc(list, func(f store.Finding) bool { return f.Code == "fsync" })
}

// finds demands that a check of the fixture finds these codes, and no others.
func (f *pgFixture) finds(t *testing.T, what string, want ...string) {
	t.Helper()
	var codes []string
	for _, f := range pgCheck(t, f.Leased(t)) {
		codes = append(codes, f.Code)
	}
	if !slices.Equal(codes, want) {
		t.Errorf("check of %s finds %v, want %v", what, codes, want)
	}
}

// TestPostgresCheckReportsOtherGrantees: rights of others on the records, such as those
// that a default privilege of the schema gives, are reported with the statement that
// takes them away. The owner and a role with exactly the rights of Grants are not others.
func TestPostgresCheckReportsOtherGrantees(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3))
	anon := "Anon " + f.Config.Schema
	f.exec(t, `CREATE ROLE "`+anon+`"`)
	t.Cleanup(func() { f.exec(t, `DROP OWNED BY "`+anon+`"; DROP ROLE "`+anon+`"`) })
	grants, err := reprisepg.Grants(f.Config, anon)
	labtest.Must(t, err)
	for name, statement := range map[string]string{"a fresh table": "", "a role that runs the store": grants} {
		f.exec(t, statement)
		if got := pgFinding(t, f.Leased(t), "other-grants"); got.Code != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	f.exec(t, `DROP OWNED BY "`+anon+`"`)
	f.exec(t, "GRANT SELECT, DELETE ON "+f.records()+" TO \""+anon+"\"; GRANT INSERT ON "+f.records()+" TO PUBLIC")
	got := pgFinding(t, f.Leased(t), "other-grants")
	want := `REVOKE ALL ON "` + f.Config.Schema + `"."reprise_records" FROM PUBLIC, "` + anon + `"`
	if got.Severity != store.Warning || !strings.Contains(got.Detail, want) {
		t.Errorf("%+v: want a warning with %s", got, want)
	}
	_, revoke, _ := strings.Cut(got.Detail, "REVOKE ")
	f.exec(t, "REVOKE "+revoke)
	if got := pgFinding(t, f.Leased(t), "other-grants"); got.Code != "" {
		t.Errorf("after the revocation: %+v", got)
	}
}

// TestPostgresCheckReportsAnUnpurgedTable: records that are due for more than a day are a
// finding, and the store purges them. Live records and those that became due today are
// none.
func TestPostgresCheckReportsAnUnpurgedTable(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3))
	f.Config.PurgeEvery = time.Second
	st := f.Leased(t)
	put := func(n int, age string) {
		at := "(date_part('epoch', now() - interval '" + age + "') * 1000000)::bigint"
		f.exec(t, f.pgInsert("(SELECT sha256(('"+age+"' || n)::bytea) AS id FROM generate_series(1, "+strconv.Itoa(n)+") AS n) AS s",
			map[string]string{"lease_until": at, "replay_until": at, "valid_until": at, "due_at": at}))
	}
	labtest.Claimed(t, st)
	put(100, "23 hours")
	if got := pgFinding(t, st, "unpurged"); got.Code != "" {
		t.Errorf("records of today: %+v", got)
	}
	put(1000, "30 days")
	got := pgFinding(t, st, "unpurged")
	if got.Severity != store.Warning || !strings.Contains(got.Detail, "30 days") || !strings.Contains(got.Detail, "Config.Purge") {
		t.Errorf("records of a month ago: %+v", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go st.Maintain(ctx) // as an engine does
	labtest.Eventually(t, "the purge", func() bool { return pgFinding(t, st, "unpurged").Code == "" })
}

// TestPostgresAcceptsNamedFindings: Open refuses an unsafe server unless each finding is
// accepted by its code, and logs those that are.
func TestPostgresAcceptsNamedFindings(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t)) // runs without fsync
	pool := labtest.NewPool(t, servers.SharedPostgres(t).URL(), labtest.SessionParam("synchronous_commit", "off"), labtest.MaxConns(10))
	for _, test := range []struct {
		accept  []string
		want    error
		refused string
		logged  []string
	}{
		{nil, store.ErrMisconfigured, "fsync", nil},
		{[]string{"fsync"}, store.ErrMisconfigured, "synchronous_commit", nil},
		{[]string{"fsync", "synchronous-commit"}, nil, "", []string{"code=fsync", "code=synchronous-commit"}},
		{[]string{"fsync", "synchronous_commit"}, store.ErrMisconfigured, "synchronous-commit: ", nil},
	} {
		c := f.Config
		c.Accept = test.accept
		var log pgLog
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		st, err := reprisepg.Open(t.Context(), pool, c)
		labtest.Want(t, "Open", err, test.want)
		if err == nil && pgFinding(t, st, "synchronous-commit").Severity != store.Warning {
			t.Error("an accepted finding pages those who watch for unsafe ones")
		}
		if err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("accepting %q: %v, want %s in it", test.accept, err, test.refused)
		}
		for _, line := range test.logged {
			if !log.contains(line) {
				t.Errorf("accepting %q does not log %s", test.accept, line)
			}
		}
	}
}
