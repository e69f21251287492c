package program

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// payouts is a service that pays out at most once.
type payouts struct {
	handler http.Handler
	status  atomic.Int64 // of the next payout
	runs    atomic.Int64
	started chan struct{} // receives where a handler waits for hold
	hold    chan struct{} // nil: handlers end at once
}

func (f *fixture) payouts(t *testing.T, horizon time.Duration) *payouts {
	t.Helper()
	engine, err := reprise.New(f.store, reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := engine.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	guard, err := protocol.Over(engine, protocol.Config{Name: "payouts", Preset: reprise.AtMostOnce, Horizon: horizon})
	if err != nil {
		t.Fatal(err)
	}
	s := &payouts{started: make(chan struct{})}
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		run := s.runs.Add(1)
		if s.hold != nil {
			s.started <- struct{}{}
			<-s.hold
		}
		w.WriteHeader(int(s.status.Load()))
		_, _ = io.WriteString(w, "run "+strconv.FormatInt(run, 10))
	})
	s.handler = reprisehttp.Middleware(guard, func(*http.Request) (string, error) { return knownScope, nil })(pay)
	return s
}

// pay sends a payout, as its client and the client's retries do.
func (s *payouts) pay(ctx context.Context, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payouts", strings.NewReader("100 EUR"))
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// want sends a payout and compares its answer.
func (s *payouts) want(t *testing.T, key string, status int, body string, replayed bool) {
	t.Helper()
	w := s.pay(t.Context(), key)
	if w.Code != status || !strings.Contains(w.Body.String(), body) || (w.Header().Get("Idempotent-Replayed") == "true") != replayed {
		t.Fatalf("%s gets %d %q, %v; want %d %q, replayed %t", key, w.Code, w.Body, w.Header(), status, body, replayed)
	}
}

// forgetting returns the fixtures of every kind of store, the transactional one included.
func forgetting() map[string]func(testing.TB) *fixture {
	all := map[string]func(testing.TB) *fixture{
		"transactional": func(tb testing.TB) *fixture {
			tb.Helper()
			server := servers.SharedPostgres(tb)
			pg := labtest.SetupPostgres(tb, server)
			f := postgresFixture(tb, pg, server.URL())
			f.store, f.env = pg.Transactional(tb), append(f.env, "REPRISE_TRANSACTIONAL=true")
			return f
		},
	}
	for _, kind := range kinds {
		all[kind.name] = kind.setup
	}
	return all
}

// TestAKeptFailureIsForgotten: AtMostOnce keeps a 503 although nothing was paid, and
// every retry gets it; an operator forgets it, and the next retry pays, once.
func TestAKeptFailureIsForgotten(t *testing.T) {
	t.Parallel()
	for name, setup := range forgetting() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			for _, horizon := range []time.Duration{0, 90 * 24 * time.Hour} {
				s, key := f.payouts(t, horizon), "kept for "+horizon.String()
				id := store.DeriveID(knownScope, "", key)
				s.status.Store(503)
				s.want(t, key, 503, "run 1", false)
				s.want(t, key, 503, "run 1", true)
				fence := f.inspect(t, id).Fence
				resolve := func(code int, fence uint64, args ...string) string {
					t.Helper()
					return runProgram(t, f.env, code, append([]string{"resolve", id.String(), "--yes", "--reason", "nothing was sent", "--fence", strconv.FormatUint(fence, 10)}, args...)...)
				}
				for what, out := range map[string]string{
					"completed (a failure)":              runProgram(t, f.env, 0, "show", id.String()),
					"gets next: 503, marked as a replay": runProgram(t, f.env, 0, "show", id.String()),
					"it can only be forgotten":           resolve(1, fence, "--answer", "201"),
					"--forget --run-again forgets it":    resolve(1, fence, "--forget"),
					"with the fence":                     resolve(1, fence+1, "--forget", "--run-again"),
				} {
					if !strings.Contains(out, what) {
						t.Errorf("%q is not in\n%s", what, out)
					}
				}
				s.want(t, key, 503, "run 1", true)

				log := filepath.Join(t.TempDir(), "audit.json")
				out := resolve(0, fence, "--forget", "--run-again", "--audit-log", log)
				if !strings.Contains(out, "the key would be remembered for") || !strings.Contains(out, "The client gets next: a new run: there is no record") {
					t.Error(out)
				}
				audit, err := os.ReadFile(log)
				if err != nil || strings.Count(string(audit), `"state":"completed"`) != 2 || strings.Count(string(audit), `"reason":"nothing was sent"`) != 2 {
					t.Errorf("the audit log has %s, %v", audit, err)
				}
				s.status.Store(201)
				s.want(t, key, 201, "run 2", false)
				s.want(t, key, 201, "run 2", true)
				resolve(1, fence, "--forget", "--run-again") // the record is another one now
				s.want(t, key, 201, "run 2", true)
			}
		})
	}
}

// TestWhatNobodyCanReadIsForgotten: a record that cannot be read answers 500, and runs no
// handler, until an operator forgets it; then the next retry runs.
func TestWhatNobodyCanReadIsForgotten(t *testing.T) {
	t.Parallel()
	for name, setup := range forgetting() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			s, id := f.payouts(t, 24*time.Hour), store.DeriveID(knownScope, "", "ruined")
			s.status.Store(201)
			s.want(t, "ruined", 201, "run 1", false)
			f.ruin(t, id)
			s.want(t, "ruined", 500, "record-corrupt", false)
			fence := strconv.FormatUint(f.inspect(t, id).Fence, 10)
			if out := runProgram(t, f.env, 0, "show", id.String()); !strings.Contains(out, fence) {
				t.Errorf("the fence %s is not shown:\n%s", fence, out)
			}
			runProgram(t, f.env, 1, "resolve", id.String(), "--reason", "looked at", "--forget", "--yes", "--fence", fence)
			runProgram(t, f.env, 1, "resolve", id.String(), "--reason", "looked at", "--forget", "--run-again", "--yes", "--fence", "1")
			s.want(t, "ruined", 500, "record-corrupt", false)
			out := runProgram(t, f.env, 0, "resolve", id.String(), "--reason", "looked at", "--forget", "--run-again", "--yes", "--fence", fence)
			if !strings.Contains(out, `"state":"unreadable"`) {
				t.Errorf("the audit log does not say what was forgotten:\n%s", out)
			}
			s.want(t, "ruined", 201, "run 2", false)
			s.want(t, "ruined", 201, "run 2", true)
		})
	}
}

// TestALiveAttemptIsNotForgotten: an attempt that runs stays, whatever the operator
// passes.
func TestALiveAttemptIsNotForgotten(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f := kind.setup(t)
			s, id := f.payouts(t, 0), store.DeriveID(knownScope, "", "live")
			s.status.Store(201)
			s.hold = make(chan struct{})
			first := make(chan *httptest.ResponseRecorder)
			go func() { first <- s.pay(t.Context(), "live") }()
			<-s.started
			fence := strconv.FormatUint(f.inspect(t, id).Fence, 10)
			out := runProgram(t, f.env, 1, "resolve", id.String(), "--reason", "looked at", "--forget", "--run-again", "--yes", "--fence", fence)
			if !strings.Contains(out, "is running: its attempt still runs") {
				t.Error(out)
			}
			s.want(t, "live", 409, "in-progress", false)
			close(s.hold)
			if w := <-first; w.Code != 201 {
				t.Errorf("the first client gets %d %s", w.Code, w.Body)
			}
			s.want(t, "live", 201, "run 1", true)
		})
	}
}

// TestWhoSawALapsedRecordDoesNotForgetItsResult: a script that saw a lapsed record cannot
// also forget the result of its attempt, which completes late with the same fence.
func TestWhoSawALapsedRecordDoesNotForgetItsResult(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, f *fixture) {
		id := store.DeriveID("tests", t.Name(), "lapsed")
		f.claim(t, id, "refunds", time.Millisecond)
		f.awaitState(t, id, store.StateLapsed)
		fence := strconv.FormatUint(f.inspect(t, id).Fence, 10)
		out := runProgram(t, f.env, 1, "resolve", id.String(), "--reason", "looked at", "--forget", "--run-again", "--yes", "--fence", fence)
		if !strings.Contains(out, "RunAgain is for forgetting one that is completed") {
			t.Error(out)
		}
		if state := f.inspect(t, id).State; state != store.StateLapsed {
			t.Errorf("the record is %v", state)
		}
		runProgram(t, f.env, 0, "resolve", id.String(), "--reason", "looked at", "--forget", "--yes", "--fence", fence)
	})
}

// TestAttemptCompletesWhileAPersonReads: an attempt that lapsed completes late, with the
// fence that the person saw; its result is not forgotten.
func TestAttemptCompletesWhileAPersonReads(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, f *fixture) {
		id := store.DeriveID("tests", t.Name(), "late")
		claim := f.claim(t, id, "refunds", time.Millisecond)
		f.awaitState(t, id, store.StateLapsed)
		s := f.start(t, "resolve", id.Short(), "--reason", "looked at", "--forget")
		s.await("Before", "After", "Type "+id.String()[:8]+" to forget the record:")
		payload, err := stored.Encode(protocol.Response{Status: 201})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.store.Complete(t.Context(), store.CompleteRequest{ID: id, Owner: claim.Owner, Payload: payload, Policy: claim.Policy}); err != nil {
			t.Fatal(err)
		}
		s.typeIn(id.String()[:8] + keyEnter)
		s.exits(1)
		s.wrote("changed since it was shown, so nothing was written: it is completed now, attempt 1")
		if outcome, response := f.replay(t, id); outcome != store.Completed || response.Status != 201 {
			t.Errorf("the retry gets %v, %+v", outcome, response)
		}
	})
}

// onEachServer runs a test on one deployment of each server, for what the others cannot
// do differently.
func onEachServer(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	for _, kind := range kinds {
		if kind.name != "redis" && kind.name != "postgres" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, kind.setup(t))
		})
	}
}
