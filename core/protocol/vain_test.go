package protocol_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// allDecisions is the functions that decide for a handler, by their names.
var allDecisions = map[string]func(context.Context) bool{
	"Keep": protocol.Keep, "Release": protocol.Release, "OmitBody": protocol.OmitBody,
	"Unknown": func(ctx context.Context) bool { return protocol.Unknown(ctx, "the secret of a request") },
}

// outsideOfRuns says that this process is that of the test below.
const outsideOfRuns = "PROTOCOL_TEST_OUTSIDE"

// A separate process calls each function twice with contexts of no run, and logs once for
// each. A value under the key of the module that is another's is none of a run.
func TestR36DecisionsOutsideOfARunAreLoggedOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv(outsideOfRuns) != "" {
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stdout, nil)))
		for _, value := range []any{nil, "x", 42, []string{"x"}, t.Context(), (*http.Request)(nil)} {
			for name, decide := range allDecisions {
				ctx := frameworkContext{t.Context(), map[string]any{store.ContextKey: value}}
				if decide(ctx) || decide(context.WithValue(t.Context(), store.ContextKey, value)) { //nolint:staticcheck // as frameworks find values by strings
					t.Errorf("%s finds something to decide about in %v", name, value)
				}
			}
		}
		return
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // the test itself
	run.Env = append(os.Environ(), outsideOfRuns+"=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name := range allDecisions {
		if n := bytes.Count(out, []byte("level=WARN msg=\"reprise: a decision of a handler had no effect; this is said once\" function="+name+" ")); n != 1 {
			t.Errorf("%s: %d warnings, want 1: %s", name, n, out)
		}
	}
	if bytes.Contains(out, []byte("secret")) {
		t.Errorf("the log has something of the request: %s", out)
	}
}

// Each guard warns once, in the log of its engine.
func TestR36DecisionsInVainAreLoggedOnceByEachGuard(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	engine := must(reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	for _, label := range []string{"orders", "refunds"} {
		guard := must(protocol.Over(engine, protocol.Config{Name: label, Endpoint: label}))
		b := &bench{t, guard}
		for _, key := range []string{"k1", "k2"} {
			var x *protocol.Exchange
			b.run(key, func(_ *protocol.Recorder, _ http.Header, run *protocol.Exchange) { x = run })
			for name, decide := range allDecisions {
				if decide(x.Context()) {
					t.Errorf("%s decides about a response that was taken", name)
				}
			}
		}
		for name := range allDecisions {
			if n := strings.Count(log.String(), "function="+name+" label="+label+" reason=\"the response of the handler was taken before\""); n != 1 {
				t.Errorf("%s of %s: %d warnings, want 1: %s", name, label, n, &log)
			}
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has something of the request: %s", &log)
	}
}
