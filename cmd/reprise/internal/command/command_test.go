package command

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// The sums are those that ariga.io/atlas computes for these files.
func TestAtlasSum(t *testing.T) {
	t.Parallel()
	got := string(atlasSum([]file{{name: "0001_a.sql", content: []byte("CREATE TABLE a ();\n")}, {name: "0002_b.sql", content: []byte("CREATE TABLE b ();\n")}}))
	want := `h1:btgpjQ2AkBjFNyxAiaOegV99gmXzOUWeZ6fA5+p4Wso=
0001_a.sql h1:fA3+8CDCanhRXxEo3WsUvkYzABBDMfl1ERdGnXn6YiQ=
0002_b.sql h1:R6G+BYOcR05YqbvCAOspR7u9sghqOpjQbx3Teoh5CYI=
`
	if got != want {
		t.Errorf("atlas.sum:\n%s\nwant:\n%s", got, want)
	}
}

// Migrations are printed in the order in which they run, each under its name.
func TestMigrationsArePrintedInOrder(t *testing.T) {
	t.Parallel()
	list := []store.Migration{{Version: 1, Name: "0001_a", SQL: "up a;\n", Down: "down a;\n"}, {Version: 2, Name: "0002_b", SQL: "up b;\n", Down: "down b;\n"}}
	for down, want := range map[bool]string{
		false: "-- 0001_a.sql\nup a;\n\n-- 0002_b.sql\nup b;\n",
		true:  "-- 0002_b.sql\ndown b;\n\n-- 0001_a.sql\ndown a;\n",
	} {
		files, err := migrationFiles(list, "sql", down)
		must(t, err)
		var out bytes.Buffer
		if err := (&session{out: ui.NewStream(&out, os.Getenv)}).writeMigrations(files, ""); err != nil || out.String() != want {
			t.Errorf("down %v: %v\n%s\nwant:\n%s", down, err, out.String(), want)
		}
	}
}

func TestPostgresFindingsHaveTheirRemedies(t *testing.T) {
	t.Parallel()
	st := &connect.Store{Kind: connect.Postgres, User: `odd "role`, Config: reprisepg.Config{Schema: "billing"}, Settings: connect.Settings{Schema: "billing"}}
	for code, want := range map[string]string{
		"synchronous-commit": `ALTER ROLE "odd ""role" SET synchronous_commit = on;`,
		"read-only":          `ALTER ROLE "odd ""role" SET default_transaction_read_only = off;`,
		"isolation":          `ALTER ROLE "odd ""role" SET default_transaction_isolation = 'read committed';`,
		"fsync":              `ALTER SYSTEM SET fsync = on;`,
		"full-page-writes":   `ALTER SYSTEM SET full_page_writes = on;`,
		"in-recovery":        `target_session_attrs=read-write in the URL`,
		"unlogged":           `ALTER TABLE "billing"."reprise_records" SET LOGGED;`,
		"schema":             `reprise migrate apply --schema billing`,
		"privileges":         `GRANT USAGE ON SCHEMA "billing" TO "odd ""role";`,
	} {
		if got := remedy(st, &store.Finding{Code: code, Detail: "run Migrate, or apply what Migrations returns"}); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// A service that the command leaves running has its output open.
func TestRunCommandWaitsForTheCommandOnly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := runCommand(ctx, "sleep 30 &"); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if err := runCommand(ctx, "echo no such service; exit 3"); err == nil || !strings.Contains(err.Error(), "no such service") {
		t.Errorf("%v", err)
	}
}

// A quantile beyond the last boundary of a histogram would look like that boundary.
func TestBucketsOfTheProxyReachPastItsTimeouts(t *testing.T) {
	t.Parallel()
	m, err := newMeters()
	must(t, err)
	m.around(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	families, err := m.registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() != "reprise_proxy_request_seconds" {
			continue
		}
		buckets := family.GetMetric()[0].GetHistogram().GetBucket()
		if last := buckets[len(buckets)-1].GetUpperBound(); last <= maxRun.Seconds() {
			t.Errorf("the last bucket ends at %v s", last)
		}
		return
	}
	t.Error("the histogram is missing")
}
