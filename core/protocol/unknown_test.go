package protocol_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// The first client gets its handler's response, and every retry 409 outcome-unknown.
func TestR52UnknownRefusesRetriesWhateverThePreset(t *testing.T) {
	t.Parallel()
	says := func(reason string) func(context.Context) { return decisions(unknownBecause(reason)) }
	for name, c := range map[string]struct {
		handler  func(context.Context)
		decide   func(protocol.Ending) protocol.Decision
		captured protocol.Captured
		reason   string
	}{
		"the handler":           {says("timeout"), nil, protocol.Captured{Status: 504, Body: []byte("ask us")}, "timeout"},
		"with a success":        {says("timeout"), nil, protocol.Captured{Status: 202}, "timeout"},
		"with a released one":   {says("timeout"), nil, protocol.Captured{Status: 429}, "timeout"},
		"as a stream":           {says("timeout"), nil, protocol.Captured{Status: 200, Sent: true}, "timeout"},
		"then a panic":          {says("timeout"), nil, protocol.Captured{Panicked: true}, "timeout"},
		"then a cut":            {says("timeout"), nil, protocol.Captured{Status: 200, Cut: true}, "timeout"},
		"and too large":         {says("timeout"), nil, protocol.Captured{Status: 504, Oversize: true}, "timeout"},
		"without a reason":      {says(""), nil, protocol.Captured{Status: 504}, "no reason given"},
		"before Decide":         {says("timeout"), func(protocol.Ending) protocol.Decision { return protocol.KeepResponse }, protocol.Captured{Status: 504}, "timeout"},
		"by Decide":             {decisions(), func(e protocol.Ending) protocol.Decision { return unknownAt(e.Status, 504) }, protocol.Captured{Status: 504}, "Config.Keep.Decide, for a response with the status 504"},
		"by Decide, too large":  {decisions(), func(e protocol.Ending) protocol.Decision { return unknownAt(e.Status, 504) }, protocol.Captured{Status: 504, Oversize: true}, "Config.Keep.Decide, for a response with the status 504"},
		"after keep":            {decisions(protocol.Keep, unknownBecause("later")), nil, protocol.Captured{Status: 200}, "later"},
		"after release":         {decisions(protocol.Release, unknownBecause("later")), nil, protocol.Captured{Status: 200}, "later"},
		"with an omitted body":  {decisions(protocol.OmitBody, unknownBecause("later")), nil, protocol.Captured{Status: 200}, "later"},
		"the last of two words": {decisions(unknownBecause("first"), unknownBecause("last")), nil, protocol.Captured{Status: 200}, "last"},
	} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			for _, atomic := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/atomic=%v", name, preset, atomic), func(t *testing.T) {
					t.Parallel()
					records := memstore.New()
					var st store.Store = records
					if atomic {
						st = atomically(records)
					}
					b := setupOver(t, st, protocol.Config{Preset: preset, Keep: protocol.Keeping{Decide: c.decide}})
					x := b.admit("k", "body").Exchange
					c.handler(x.Context())
					if reply := x.Finish(c.captured); reply.Replace || reply.Mark.Name != "" {
						t.Errorf("the first client gets %+v", reply)
					}
					if protocol.Unknown(x.Context(), "too late") {
						t.Error("a word after the end is taken")
					}
					x.Close()
					if got := onlyRecord(t, records).Reason; got != c.reason {
						t.Errorf("the reason is %q, want %q", got, c.reason)
					}
					for _, retry := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
						if got := admissionCode(t, setupOver(t, st, protocol.Config{Preset: retry}).admit("k", "body")); got != protocol.CodeOutcomeUnknown {
							t.Errorf("a retry with %v gets %q, want %q", retry, got, protocol.CodeOutcomeUnknown)
						}
					}
				})
			}
		}
	}
}

// A handler that did not return within a lease after MaxRun left an unknown outcome. Its
// client gets its response after all, and nothing replays it.
func TestResponseAfterMaxRunIsMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records := memstore.New()
		b := setupOver(t, records, protocol.Config{Engine: reprise.Config{Lease: time.Second, MaxRun: time.Second}})
		x := b.admit("k", "body").Exchange
		defer x.Close()
		time.Sleep(3 * time.Second)
		if got := onlyRecord(t, records).Reason; got != "ran longer than MaxRun" {
			t.Fatalf("the reason is %q", got)
		}
		reply := x.Finish(protocol.Captured{Status: 201, Body: []byte("late")})
		if reply.Replace || reply.Mark.Value != "unrecorded" {
			t.Errorf("the first client gets %+v", reply)
		}
		if got := admissionCode(t, b.admit("k", "body")); got != protocol.CodeOutcomeUnknown {
			t.Errorf("a retry gets %q, want %q", got, protocol.CodeOutcomeUnknown)
		}
	})
}

// decisions is a handler that decides in this order.
func decisions(list ...func(context.Context) bool) func(context.Context) {
	return func(ctx context.Context) {
		for _, decide := range list {
			decide(ctx)
		}
	}
}

func unknownBecause(reason string) func(context.Context) bool {
	return func(ctx context.Context) bool { return protocol.Unknown(ctx, reason) }
}

func unknownAt(status, unknown int) protocol.Decision {
	if status == unknown {
		return protocol.OutcomeUnknown
	}
	return protocol.ByPreset
}

// A handler that learns the outcome after all can say so.
func TestUnknownIsRevoked(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(context.Context) bool{"keep": protocol.Keep, "release": protocol.Release} {
		records := memstore.New()
		b := setupOver(t, records, protocol.Config{})
		x := b.admit("k", "body").Exchange
		if !protocol.Unknown(x.Context(), "timeout") || !last(x.Context()) {
			t.Errorf("%s: a decision is not taken", name)
		}
		finish(x, 500)
		if got := onlyRecord(t, records).Reason; got != "" {
			t.Errorf("%s: unknown, because %s", name, got)
		}
		again := b.admit("k", "body")
		if kept := again.Exchange == nil; kept != (name == "keep") {
			t.Errorf("%s: kept %t", name, kept)
		}
		if again.Exchange != nil {
			finish(again.Exchange, 200)
		}
	}
}

// A response whose record says nothing is marked: a retry may run.
func TestUnknownThatIsNotRecordedIsMarked(t *testing.T) {
	t.Parallel()
	unsaid := func() store.Store {
		return &hooked{Store: memstore.New(), OnUnknown: func(context.Context, store.UnknownRequest) error { return store.ErrCorrupt }}
	}
	for _, st := range []store.Store{unsaid(), atomically(unsaid())} {
		b := setupOver(t, st, protocol.Config{})
		x := b.admit("k", "body").Exchange
		protocol.Unknown(x.Context(), "timeout")
		reply := x.Finish(protocol.Captured{Status: 504})
		x.Close()
		if reply.Replace || reply.Mark != (protocol.Field{Name: "Idempotency-Status", Value: "unrecorded"}) {
			t.Errorf("the first client gets %+v", reply)
		}
	}
}

// A handler without a claim is told that nothing keeps its word.
func TestUnknownOfAnUnprotectedRunSaysSo(t *testing.T) {
	t.Parallel()
	b := setupOver(t, unclaimed(store.ErrUnavailable), protocol.Config{FailOpen: true})
	x := b.admit("k", "body").Exchange
	if protocol.Unknown(x.Context(), "timeout") {
		t.Error("its word is taken")
	}
	if reply := x.Finish(protocol.Captured{Status: 504}); reply.Mark.Value != "unprotected" {
		t.Errorf("the client gets %+v", reply)
	}
	x.Close()
	if protocol.Unknown(t.Context(), "timeout") {
		t.Error("a word outside of an exchange is taken")
	}
}

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
				if decide(context.WithValue(t.Context(), store.ContextKey, value)) { //nolint:staticcheck // as frameworks find values by strings
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
		guard := must(protocol.Over(engine, protocol.Config{Label: label, Endpoint: label}))
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
