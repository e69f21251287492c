package matrix

import (
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // for effects; the package serve has the other drivers

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestMatrix(t *testing.T) {
	t.Parallel()
	RunAll(t, rows(t), func(adapter string) (string, string) { return build(t, adapter) })
}

// unserved is what the go command says of a module that the proxy refuses, or that
// .ci/modules left out of the workspace for it.
var unserved = regexp.MustCompile(`[^ ]+@v[^ ]+: reading [^ ]+: .*|module that is not one of the workspace modules`)

// build builds the test server of an adapter. Its races are for the suites beside the
// adapters and the stores to find.
func build(t *testing.T, adapter string) (file, refused string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), adapter)
	command := exec.CommandContext(t.Context(), "go", "build", "-o", file, ".")
	command.Dir = filepath.Join("..", adapter, "testserver")
	command.Env = os.Environ()
	if adapter == "fiber3" && os.Getenv("REPRISE_NEWEST") == "" { // outside of the workspace: docs/engineering/adr/0023-fiber3.md
		command.Env = append(command.Env, "GOWORK=off")
	}
	out, err := command.CombinedOutput()
	if err != nil {
		if refused = unserved.FindString(string(out)); refused == "" {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return file, refused
}

// rows are the stores, but those of etcd: lab/etcd/testserver has their rows.
func rows(t *testing.T) []Store {
	t.Helper()
	redis := servers.Redis.Shared(t)
	postgres, mariadb := servers.StartPostgres(t, "max_connections=400"), servers.StartMariaDB(t, "max-connections=400")
	const database = "CREATE DATABASE matrix"
	for _, of := range []string{"leased", "atomic"} {
		if _, err := postgres.Exec(t.Context(), database+"_"+of); err != nil {
			t.Fatal(err)
		}
		mysqlserver.Exec(t, mariadb.URL(), database+"_"+of)
	}
	inPostgres := func(of string) func(testing.TB) ([]string, string) {
		return func(testing.TB) ([]string, string) {
			at, _ := url.Parse(postgres.URL()) // which was started here
			at.Path = "/matrix_" + of
			return []string{"-postgres-url", at.String(), "-pool", "24"}, postgres.Addr()
		}
	}
	inMariaDB := func(of string) func(testing.TB) ([]string, string) {
		return func(testing.TB) ([]string, string) {
			return []string{"-mysql-url", mariadb.URL() + "/matrix_" + of, "-pool", "24"}, mariadb.Addr()
		}
	}
	inFile := func(tb testing.TB) ([]string, string) {
		tb.Helper()
		return []string{"-sqlite-file", filepath.Join(tb.TempDir(), "records.db")}, ""
	}
	effects := func(driver, arg string, source func(place string) string) func(testing.TB, []string, string) int {
		return func(tb testing.TB, place []string, op string) (n int) {
			tb.Helper()
			db, err := sql.Open(driver, source(place[1]))
			if err == nil {
				defer db.Close()
				err = db.QueryRowContext(tb.Context(), "SELECT count(*) FROM reprise_effects WHERE op = "+arg, op).Scan(&n)
			}
			labtest.Must(tb, err)
			return n
		}
	}
	places := map[string]Store{
		"memory":      {Place: func(testing.TB) ([]string, string) { return nil, "" }},
		"redis":       {Place: func(testing.TB) ([]string, string) { return []string{"-redis-url", redis.URL()}, redis.Addr() }},
		"postgres":    {Place: inPostgres("leased")},
		"postgres-tx": {Place: inPostgres("atomic"), Effects: effects("pgx", "$1", func(url string) string { return url })},
		"mysql":       {Place: inMariaDB("leased")},
		"mysql-tx":    {Place: inMariaDB("atomic"), Effects: effects("mysql", "?", func(string) string { return "root@tcp(" + mariadb.Addr() + ")/matrix_atomic" })},
		"sqlite":      {Place: inFile},
		"sqlite-tx":   {Place: inFile, Effects: effects("sqlite", "?", func(file string) string { return "file:" + file })},
	}
	var here []Store
	for _, s := range Stores {
		if at, ok := places[s.Name]; ok {
			s.Place, s.Effects = at.Place, at.Effects
			here = append(here, s)
		}
	}
	return here
}
