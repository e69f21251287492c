package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// A service that runs a request twice, or accepts one without a key, is found.
func TestProgramsAreHeldToTheirReplays(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		replays, refuses bool
		want             string // empty: no error
	}{
		"replays and refuses": {true, true, ""},
		"runs twice":          {false, true, "want 201 and its replay"},
		"needs no key":        {true, false, "without a key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var orders atomic.Int64
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Idempotency-Key") == "" && row.refuses:
					w.WriteHeader(http.StatusBadRequest)
				case orders.Add(1) > 1 && row.replays:
					w.Header().Set("Idempotent-Replayed", "true")
					fallthrough
				default:
					w.WriteHeader(http.StatusCreated)
				}
			}))
			t.Cleanup(service.Close)
			err := program{path: "/orders"}.ask(t.Context(), strings.TrimPrefix(service.URL, "http://"))
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

func TestProgramsThatFailAreFound(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		program program
		script  string
		want    string
	}{
		"a service that ends":      {program{path: "/orders"}, "echo no database >&2; exit 1", "no database"},
		"a program that fails":     {program{prints: "done"}, "echo done; exit 1", "exit status 1"},
		"a program that says less": {program{prints: "done"}, "echo begun", `it does not print "done"`},
		"a program that says it":   {program{prints: "done"}, "echo done", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := row.program.run(t.Context(), exec.CommandContext(t.Context(), "sh", "-c", row.script), "127.0.0.1:1")
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

func TestEachAdapterAndStoreHasAProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, p := range programs {
		tree.Write(t, dir, "examples/"+p.folder+"/main.go", "package main\n\nimport _ \""+prefix+"store/redis/sub\"\n")
	}
	r := &release{clone: &repository{dir: dir}, modules: []module{newModule(t, "core"), newModule(t, "store/redis"), newModule(t, "store/internal"), newModule(t, "store/new")}}
	wantRefusal(t, r.runPrograms(t.Context(), nil), "no program of examples imports store/new")
}
