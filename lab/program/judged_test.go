package program

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// judgement is the report of reprise judge as JSON.
type judgement struct {
	Requests int
	Facts    []string
	Ended    string
	Summary  map[string]struct {
		Met      int
		NotMet   int `json:"not_met"`
		NotShown int `json:"not_shown"`
	}
	Cases []judgedCase
}

type judgedCase struct{ ID, Level, State, Sentence, Source, Detail string }

// in returns the IDs of the cases in a state.
func (j *judgement) in(state string) []string {
	ids := []string{}
	for _, c := range j.Cases {
		if c.State == state {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// notMet fails t unless exactly these cases are not met.
func (j *judgement) notMet(t *testing.T, want ...string) {
	t.Helper()
	if got := j.in("not met"); !slices.Equal(got, want) {
		t.Errorf("not met: %q, want %q", got, want)
		for _, c := range j.Cases {
			if c.State == "not met" {
				t.Logf("%s: %s", c.ID, c.Detail)
			}
		}
	}
}

// judge runs reprise judge, and fails t if its exit code disagrees with its report.
func judge(t *testing.T, args ...string) *judgement {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program(t), append([]string{"judge", "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says more
	var j judgement
	if err := json.Unmarshal(out.Bytes(), &j); err != nil {
		t.Fatalf("exit code %d: %s%s", cmd.ProcessState.ExitCode(), out.Bytes(), errs.Bytes())
	}
	want := 0
	switch {
	case j.Summary["must"].NotMet > 0:
		want = 1
	case j.Ended != "":
		want = 2
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	return &j
}

// judgedRetention is that of the services whose retention the tests judge.
const judgedRetention = 4 * time.Second

// cooperation are the flags that make a test server show all but retention, crashes and
// other addresses.
func cooperation(base string) []string {
	return []string{
		base + "/t/op", "--slow", "400ms", "--executions", base + "/executions/op",
		"--scope", adaptertest.TenantHeader + ": one", "--scope", adaptertest.TenantHeader + ": two",
	}
}

// wrap is a middleware.
type wrap = func(http.Handler) http.Handler

// judgedServer serves two endpoints of the programmable application behind a guard, with
// one middleware outside of it and one inside, and a change of the bytes that it reads.
func judgedServer(t *testing.T, c protocol.Config, outside, inside wrap, wire func([]byte) int) string {
	t.Helper()
	app, err := testapp.New(adaptertest.Options{Store: memstore.New()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Engine.Log = slog.New(slog.DiscardHandler)
	guard, err := protocol.New(memstore.New(), c)
	if err != nil {
		t.Fatal(err)
	}
	other, err := guard.With(func(c *protocol.Config) { c.Endpoint = "other" })
	if err != nil {
		t.Fatal(err)
	}
	protect := func(guard *protocol.Guard) http.Handler {
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := app.Run(r.Context(), &testapp.NetHTTPCall{W: w, R: r}, "op"); err != nil {
				t.Error(err)
			}
		})
		if inside != nil {
			handler = inside(handler)
		}
		handler = reprisehttp.Middleware(guard, func(r *http.Request) (string, error) {
			return testapp.TenantOf(r.Header.Values(adaptertest.TenantHeader))
		})(handler)
		if outside != nil {
			handler = outside(handler)
		}
		return handler
	}
	mux := http.NewServeMux()
	mux.Handle("/t/op", protect(guard))
	mux.Handle("/t/other", protect(other))
	mux.HandleFunc("GET /executions/op", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(app.Report("op")) })
	server := httptest.NewUnstartedServer(mux)
	if wire != nil {
		server.Listener = changedListener{server.Listener, wire}
	}
	server.Start()
	t.Cleanup(func() {
		server.Close()
		if err := guard.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// changedListener changes the bytes of its connections.
type changedListener struct {
	net.Listener

	change func([]byte) int
}

func (l changedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &changedConn{conn, l.change}, err
}

type changedConn struct {
	net.Conn

	change func([]byte) int
}

func (c *changedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return c.change(p[:n]), err
}
