package protocol_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// R51: two policies would decide about one operation, whichever guard the other is, and
// whatever part of the identity it adds.
func TestGuardInsideAnotherRefusesAndRunsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*protocol.Guard, *slog.Logger) (*protocol.Guard, error){
		"a stricter policy": func(g *protocol.Guard, _ *slog.Logger) (*protocol.Guard, error) {
			return g.With(func(c *protocol.Config) { c.Label, c.Preset = "payments", reprise.AtMostOnce })
		},
		"the same policy": func(g *protocol.Guard, _ *slog.Logger) (*protocol.Guard, error) {
			return g.With(func(c *protocol.Config) { c.Label = "payments" })
		},
		"another endpoint, and so another ID": func(g *protocol.Guard, _ *slog.Logger) (*protocol.Guard, error) {
			return g.With(func(c *protocol.Config) { c.Label, c.Endpoint = "payments", "payments" })
		},
		"another engine and store": func(_ *protocol.Guard, log *slog.Logger) (*protocol.Guard, error) {
			return protocol.New(memstore.New(), protocol.Config{Label: "payments", Engine: reprise.Config{Log: log}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			log := slog.New(slog.NewTextHandler(&lines, nil))
			outer := setup(t, protocol.Config{Label: "service", Engine: reprise.Config{Log: log}})
			inner := &bench{t, must(change(outer.guard, log))}
			t.Cleanup(func() { _ = inner.guard.Close(context.WithoutCancel(t.Context())) })
			w := outer.run("key", func(rec *protocol.Recorder, header http.Header, x *protocol.Exchange) {
				a := inner.admitIn(x.Context(), "key", unread)
				if a.Pass || a.Exchange != nil {
					t.Fatalf("the inner guard lets the handler run: %+v", a)
				}
				if code := admissionCode(t, a); code != protocol.CodeInternalError {
					t.Errorf("refused with %s", code)
				}
				a.Response.Write(header, rec)
			})
			if w.Code != http.StatusInternalServerError {
				t.Errorf("the client gets %d", w.Code)
			}
			if log := lines.String(); !strings.Contains(log, `guard \"payments\"`) || !strings.Contains(log, `guard \"service\"`) {
				t.Errorf("the log does not name both guards: %s", log)
			}
		})
	}
}

// A consumer may run fn under the key with which fn then calls a handler.
func TestGuardInsideARunOfDo(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	op := reprise.Operation{Scope: "tenant", Key: "key"}
	must(job.Do(t.Context(), b.guard.Engine(), op, nil, func(ctx context.Context) (int, error) {
		if a := b.admitIn(ctx, "key", unread); a.Pass || a.Exchange != nil || a.Response.Status != 500 {
			t.Errorf("a guard inside of the same operation of Do: %+v", a)
		}
		a := b.admitIn(ctx, "another", strings.NewReader(""))
		wantRun(t, a)
		finish(a.Exchange, 200) //nolint:contextcheck // an exchange has its own
		return 1, nil
	}))
}

// The context of another engine's run, or another's value, under the key with which
// adapters hand over a run: a run counts as the one around the request (R51), and
// anything else as none.
func TestAdmitWithAValueUnderTheKeyOfARun(t *testing.T) {
	t.Parallel()
	other, own := setup(t, protocol.Config{Label: "other"}), setup(t, protocol.Config{Label: "own"})
	around := other.admit("k", "body").Exchange
	handedOver := func(value any) context.Context {
		return context.WithValue(t.Context(), store.ContextKey, value) //nolint:staticcheck // as frameworks find values by strings
	}
	status := func(value any, key string) int {
		t.Helper()
		a := own.admitIn(handedOver(value), key, strings.NewReader("body"))
		if a.Exchange == nil {
			return a.Response.Status
		}
		if !protocol.Release(a.Exchange.Context()) {
			t.Error("the run of the guard itself is not found")
		}
		view, _ := reprise.AttemptFrom(a.Exchange.Context())
		if theirs, _ := reprise.AttemptFrom(around.Context()); view == theirs {
			t.Error("the attempt is that of the other engine")
		}
		finish(a.Exchange, 200)
		return 200
	}
	for _, value := range []any{nil, "x", 42, []string{"x"}, t.Context(), handedOver(42)} {
		if got := status(value, "k"); got != 200 {
			t.Errorf("%v: %d, want a run", value, got)
		}
	}
	if got := status(around.Context(), "k"); got != 500 {
		t.Errorf("inside of a run with the same key: %d, want 500", got)
	}
	if got := status(around.Context(), "another"); got != 200 {
		t.Errorf("inside of a run with another key: %d, want a run", got)
	}
	finish(around, 200)
	if got := status(around.Context(), "k"); got != 200 {
		t.Errorf("after the run: %d, want a run", got)
	}
}

// To the store, and so in time, a key that another tenant has used or is using is like
// one that is unused: the same calls have the same results. A scope that is the same for
// both tenants shows the difference.
func TestKeysOfOthersLookUnused(t *testing.T) {
	t.Parallel()
	calls := func(state, attacker, key string) []string {
		calls := &called{Store: memstore.New()}
		engine := must(reprise.New(calls, reprise.Config{}))
		defer engine.Close(context.WithoutCancel(t.Context()))
		guard := must(protocol.Over(engine, protocol.Config{}))
		ask := func(tenant, key string) protocol.Admission {
			return guard.Admit(t.Context(), protocol.Request{
				Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}, Body: strings.NewReader("body"),
			}, func() (string, error) { return tenant, nil })
		}
		victim := ask("victim", "k")
		defer victim.Exchange.Close()
		if end := func() { victim.Exchange.Finish(protocol.Captured{Status: http.StatusCreated}) }; state == "completed" {
			end()
		} else {
			defer end()
		}
		calls.list = nil
		if a := ask(attacker, key); a.Exchange != nil {
			finish(a.Exchange, http.StatusCreated)
		}
		return calls.list
	}
	for _, state := range []string{"completed", "running"} {
		unused, others, own := calls(state, "attacker", "unused"), calls(state, "attacker", "k"), calls(state, "victim", "k")
		if !slices.Equal(others, unused) || slices.Equal(own, unused) {
			t.Errorf("%s: the key of another leads to %q, an unused one to %q, and one's own to %q", state, others, unused, own)
		}
	}
}

// called is a store that lists its calls and their results.
type called struct {
	store.Store

	list []string
}

func (c *called) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	res, err := c.Store.Claim(ctx, r)
	c.list = append(c.list, "claim "+res.Outcome.String())
	return res, err
}

func (c *called) Complete(ctx context.Context, r store.CompleteRequest) error {
	err := c.Store.Complete(ctx, r)
	c.list = append(c.list, "complete")
	return err
}

func (c *called) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	err := c.Store.Release(ctx, id, owner)
	c.list = append(c.list, "release")
	return err
}
