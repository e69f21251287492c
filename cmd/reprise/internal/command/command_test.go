package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
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
	list := []reprisepg.Migration{{Version: 1, Name: "0001_a", SQL: "up a;\n", Down: "down a;\n"}, {Version: 2, Name: "0002_b", SQL: "up b;\n", Down: "down b;\n"}}
	for down, want := range map[bool]string{
		false: "-- 0001_a.sql\nup a;\n\n-- 0002_b.sql\nup b;\n",
		true:  "-- 0002_b.sql\ndown b;\n\n-- 0001_a.sql\ndown a;\n",
	} {
		files, err := migrationFiles(list, "sql", down)
		if err != nil {
			t.Fatal(err)
		}
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

// Cobra and pgx write some errors on several lines.
func TestErrorsArePrintedOnOneLine(t *testing.T) {
	t.Parallel()
	unreachable := []string{"--store", "postgres://u@127.0.0.1:1/x"}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"typo":            {[]string{"shwo"}, ExitUsage, `reprise: unknown command "shwo" for "reprise". Did you mean this? show`},
		"several choices": {[]string{"fist"}, ExitUsage, `Did you mean this? list; find`},
		"no suggestion":   {[]string{"nonsense"}, ExitUsage, `reprise: unknown command "nonsense" for "reprise"`},
		"stuck":           {append(unreachable, "stuck"), ExitUnsafe, "`user=u database=x`: 127.0.0.1:1 (127.0.0.1): dial error: "},
		"doctor":          {append(unreachable, "doctor"), ExitUnsafe, "`user=u database=x`: 127.0.0.1:1 (127.0.0.1): dial error: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := Run(t.Context(), c.args, Streams{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }})
			if code != c.code || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), `\n`) {
				t.Errorf("exit code %d, want %d and %q without \\n in\n%s", code, c.code, c.want, &out)
			}
		})
	}
}

func TestResultsOfDoAreNotShownAsUnreadable(t *testing.T) {
	t.Parallel()
	payload, err := job.EncodeResult(nil, "private", nil)
	if err != nil {
		t.Fatal(err)
	}
	record := store.Record{State: store.StateCompleted, Payload: payload}
	a := answerOf(&record)
	lines := fmt.Sprint(answerLines(a, true))
	if !strings.Contains(lines, "not an HTTP response, but a result of job.Do: it is a value of 9 bytes") || strings.Contains(lines, "private") {
		t.Errorf("shown as %s", lines)
	}
	if out := newAnswerJSON(a, true); out.Body != nil || !strings.Contains(out.Problem, "a value of 9 bytes") {
		t.Errorf("%+v", out)
	}
	if next := nextFor(&record); !strings.Contains(next, "through job.Do") {
		t.Errorf("the next request gets %s", next)
	}
}

func TestSealedResponsesAreShownAsSealed(t *testing.T) {
	t.Parallel()
	secret, err := protocol.NewSecret("2026-11", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, readable := range []bool{true, false} {
		encoded, err := operate.Encode(protocol.Response{Status: 201, Body: []byte("private")})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := protocol.Sealing{Secret: secret, ClearHead: readable}.Seal(encoded, "k", store.ID{}, store.Fingerprint{})
		if err != nil {
			t.Fatal(err)
		}
		record := store.Record{State: store.StateCompleted, Payload: payload}
		a := answerOf(&record)
		out := newAnswerJSON(a, true)
		if !out.Sealed || out.Body != nil || (out.Status == 201) != readable || !strings.Contains(out.Problem, "sealed") {
			t.Errorf("clear head %t: %+v", readable, out)
		}
		if next := nextFor(&record); !strings.Contains(next, "the sealed response") {
			t.Errorf("clear head %t: the client gets %s", readable, next)
		}
		if lines := fmt.Sprint(answerLines(a, true)); !strings.Contains(lines, "sealed") || strings.Contains(lines, "private") || strings.Contains(lines, "201") != readable {
			t.Errorf("clear head %t: %s", readable, lines)
		}
	}
}
