package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

const announcedLink = `<https://api.example.com/idempotency>; rel="describedby"`

// admitted returns the admission of a request with a key and a body.
func admitted(t *testing.T, guard *protocol.Guard, key string) protocol.Admission {
	t.Helper()
	request := protocol.Request{Method: "POST", Path: "/orders", Header: lines{"Idempotency-Key": {key}}, Body: strings.NewReader("{}")}
	return guard.Admit(t.Context(), request, func() (string, error) { return "tenant", nil })
}

type lines map[string][]string

func (l lines) Values(name string) []string { return l[name] }

func newGuard(t *testing.T, engine reprise.Config, cfg protocol.Config) *protocol.Guard {
	t.Helper()
	e, err := reprise.New(memstore.New(), engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	guard, err := protocol.New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// finished runs an exchange whose handler set the fields.
func finished(t *testing.T, a protocol.Admission, fields [][2]string, c protocol.Captured) protocol.Reply {
	t.Helper()
	if a.Exchange == nil {
		t.Fatalf("answered %d %q", a.Response.Status, a.Response.Body)
	}
	defer a.Exchange.Close()
	a.Exchange.Before(func(func(string, string) bool) {})
	a.Exchange.After(func(yield func(string, string) bool) {
		for _, f := range fields {
			if !yield(f[0], f[1]) {
				return
			}
		}
	})
	return a.Exchange.Finish(c)
}

// The expiry is the end of the retention by this process's clock, of the guard or else of
// the engine.
func TestExpiryIsTheEndOfTheRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for i, c := range []struct{ engine, guard, want time.Duration }{
			{0, 0, 24 * time.Hour}, {2 * time.Hour, 0, 2 * time.Hour}, {2 * time.Hour, 72 * time.Hour, 72 * time.Hour},
		} {
			guard := newGuard(t, reprise.Config{Retention: c.engine}, protocol.Config{Expires: true, Retention: c.guard})
			key := strconv.Itoa(i)
			admission := admitted(t, guard, key)
			time.Sleep(1500 * time.Millisecond) // the handler
			reply := finished(t, admission, nil, protocol.Captured{Status: 201})
			want := protocol.Field{Name: "Idempotency-Key-Expires", Value: fmt.Sprintf("@%d", time.Now().Add(c.want).Unix())}
			if !slices.Equal(reply.Added, []protocol.Field{want}) {
				t.Errorf("added %v, want %v", reply.Added, want)
			}
			time.Sleep(c.want / 2)
			if replay := admitted(t, guard, key).Response; !contains(replay.Header, want) {
				t.Errorf("replayed %v", slices.Collect(replay.Header.All()))
			}
		}
	})
}

func contains(h protocol.Header, f protocol.Field) bool {
	return slices.Contains(slices.Collect(h.All()), f)
}

// What the policy adds never makes a response too large to be kept.
func TestAddedFieldsGiveWayToTheHandlersOwn(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, reprise.Config{}, protocol.Config{Expires: true, PolicyURL: "https://api.example.com/idempotency"})
	for n, added := range map[int]int{62: 2, 63: 0, 64: 0} {
		var fields [][2]string
		for i := range n {
			fields = append(fields, [2]string{"X-" + strconv.Itoa(i), "1"})
		}
		key := strconv.Itoa(n)
		reply := finished(t, admitted(t, guard, key), fields, protocol.Captured{Status: 200})
		if len(reply.Added) != added {
			t.Errorf("%d fields: added %v, want %d", n, reply.Added, added)
		}
		if replay := admitted(t, guard, key).Response; replay.Status != 200 || replay.Header.Len() != n+added+1 {
			t.Errorf("%d fields: replayed %d with %d", n, replay.Status, replay.Header.Len())
		}
	}
}

// A handler that completes its operation itself stores the same fields.
func TestPayloadHasTheAddedFields(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, reprise.Config{}, protocol.Config{Expires: true, PolicyURL: "https://api.example.com/idempotency"})
	a := admitted(t, guard, "k")
	defer a.Exchange.Close()
	payload, err := protocol.Payload(a.Exchange.Context(), protocol.Response{Status: 201})
	if err != nil {
		t.Fatal(err)
	}
	r, err := protocol.DecodeResponse(payload)
	if err != nil {
		t.Fatal(err)
	}
	if expires, _ := r.Header.Get("Idempotency-Key-Expires"); r.Header.Len() != 2 || !strings.HasPrefix(expires, "@") {
		t.Errorf("kept %v", slices.Collect(r.Header.All()))
	}
	a.Exchange.Finish(protocol.Captured{Status: 201})
}

// The link is added to what WriteProblem returns, once.
func TestOwnProblemsLinkToThePolicy(t *testing.T) {
	t.Parallel()
	for name, links := range map[string][]string{"none": nil, "other": {"</a>; rel=help"}, "same": {announcedLink}} {
		guard := newGuard(t, reprise.Config{}, protocol.Config{
			PolicyURL: "https://api.example.com/idempotency",
			WriteProblem: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response {
				var fields []protocol.Field
				for _, l := range links {
					fields = append(fields, protocol.Field{Name: "Link", Value: l})
				}
				return protocol.Response{Header: protocol.NewHeader(fields...)}
			},
		})
		var got []string
		for f := range admitted(t, guard, "not a key").Response.Header.All() {
			if f.Name == "Link" {
				got = append(got, f.Value)
			}
		}
		want := slices.Compact(append(slices.Clone(links), announcedLink))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the links %q, want %q", name, got, want)
		}
	}
}

// By default nothing is added.
func TestNothingIsAddedByDefault(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, reprise.Config{}, protocol.Config{})
	a := admitted(t, guard, "k")
	if fields := a.Exchange.Announce(200); fields != nil {
		t.Errorf("announced %v", fields)
	}
	if reply := finished(t, a, nil, protocol.Captured{Status: 200}); reply.Added != nil {
		t.Errorf("added %v", reply.Added)
	}
}
