package protocol_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// describer is a Config.Describe.
type describer = func(context.Context, *protocol.Request) string

// described admits a request with a key and its retry. It returns the description in the
// record, the names of the events that tell of it, and the lines of both logs.
func described(t *testing.T, cfg protocol.Config, req protocol.Request, key string) (text string, events []string, lines string) {
	t.Helper()
	log, st, out := new(eventLog), memstore.New(), new(strings.Builder)
	logger := slog.New(slog.NewTextHandler(out, nil))
	shown := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) { logger.Info(fmt.Sprintf("%+v", e)) })
	engine := must(reprise.New(st, reprise.Config{Log: logger, MaxRun: -1, Observer: reprise.Observers(log, shown)}))
	guard := must(protocol.Over(engine, cfg))
	record := func() store.Record {
		return must(st.Inspect(t.Context(), store.DeriveID("tenant", "", key)))
	}
	a := guard.Admit(t.Context(), req, scope)
	wantRun(t, a)
	text = record().Description
	a.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("answer")})
	a.Exchange.Close()
	if again := guard.Admit(t.Context(), req, scope); again.Response.Status != 201 {
		t.Errorf("a retry gets %d", again.Response.Status)
	}
	if done := record().Description; done != text {
		t.Errorf("%q in progress, and completed %q", text, done)
	}
	if err := engine.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, e := range log.events {
		if e.Kind == protocol.EventDescription || e.Kind == protocol.EventPanic {
			events = append(events, e.Name())
		}
	}
	return text, events, out.String()
}

// TestDescribeKeepsNoKey: a description is made of the request. Neither a record nor a
// log has a text with the key in it. It is replaced, with one warning, and the request
// goes on.
func TestDescribeKeepsNoKey(t *testing.T) {
	t.Parallel()
	const withheld = "(withheld: it contained the key)"
	header := func(line string) protocol.Request {
		return protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {line}}}
	}
	query := protocol.Request{Method: "POST", Path: "/orders", RawQuery: "id=a%2Fb%2Bc-17"}
	body := protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Content-Type": {"application/json"}}, Bytes: []byte(`{"id":"key-1718"}`)}
	says := func(text string) describer { return func(context.Context, *protocol.Request) string { return text } }
	panics := func(value any) describer { return func(context.Context, *protocol.Request) string { panic(value) } }
	sent := func(_ context.Context, r *protocol.Request) string {
		return "sent " + strings.Join(r.Header.Values("Idempotency-Key"), "") + " here"
	}
	whole := func(_ context.Context, r *protocol.Request) string { return r.Path + "?" + r.RawQuery }
	route := func(_ context.Context, r *protocol.Request) string {
		return strings.Join([]string{r.Method, r.Path, r.Host, r.Header.Values("Traceparent")[0]}, " ")
	}
	routed := protocol.Request{
		Method: "POST", Target: "/orders?x=1", Host: "api.example",
		Header: http.Header{"Idempotency-Key": {"k-17"}, "Traceparent": {"00-4bf9"}},
	}
	for name, c := range map[string]struct {
		describe describer
		source   protocol.KeySource
		req      protocol.Request
		key      string
		want     string
		event    string
	}{
		"none":               {nil, protocol.KeySource{}, routed, "k-17", "", ""},
		"the request":        {route, protocol.KeySource{}, routed, "k-17", "POST /orders api.example 00-4bf9", ""},
		"another text":       {says("POST /orders"), protocol.KeySource{}, header("key-1718"), "key-1718", "POST /orders", ""},
		"a long text":        {says(strings.Repeat("y", 300)), protocol.KeySource{}, header("key-1718"), "key-1718", strings.Repeat("y", 252) + "...", ""},
		"bare":               {sent, protocol.KeySource{}, header("key-1718"), "key-1718", withheld, "description-withheld"},
		"quoted":             {sent, protocol.KeySource{}, header(`"key 1718"`), "key 1718", withheld, "description-withheld"},
		"with escapes":       {sent, protocol.KeySource{}, header(`"a\"b\\c-17"`), `a"b\c-17`, withheld, "description-withheld"},
		"decoded":            {says(`of a"b\c-17`), protocol.KeySource{}, header(`"a\"b\\c-17"`), `a"b\c-17`, withheld, "description-withheld"},
		"behind what is cut": {says(strings.Repeat("x", 250) + "key-1718"), protocol.KeySource{}, header("key-1718"), "key-1718", withheld, "description-withheld"},
		"in a query":         {whole, protocol.KeyParam("id"), query, "a/b+c-17", withheld, "description-withheld"},
		"beside a stray %":   {says("/orders?id=a%2Fb%2Bc-17&x=100%"), protocol.KeyParam("id"), query, "a/b+c-17", withheld, "description-withheld"},
		"in a path":          {says("/orders/a%2Fb+c-17"), protocol.KeyParam("id"), query, "a/b+c-17", withheld, "description-withheld"},
		"of the body":        {says("id key-1718"), protocol.KeyField("/id"), body, "key-1718", withheld, "description-withheld"},
		"panic":              {panics("a bug"), protocol.KeySource{}, header("key-1718"), "key-1718", "", "panic"},
		"panic with it":      {panics("a bug at key-1718"), protocol.KeySource{}, header("key-1718"), "key-1718", "", "panic"},
		"error with it":      {panics(quoting{"key-1718"}), protocol.KeySource{}, header("key-1718"), "key-1718", "", "panic"},
	} {
		got, events, lines := described(t, protocol.Config{Key: c.source, Describe: c.describe}, c.req, c.key)
		if got != c.want {
			t.Errorf("%s: the record has %q, want %q", name, got, c.want)
		}
		if n := len(events); c.event == "" && n > 0 || c.event != "" && (n != 2 || events[0] != c.event || events[1] != c.event) { // of the request and its retry
			t.Errorf("%s: the events %v", name, events)
		}
		if n := strings.Count(lines, "Config.Describe returned a text with the key"); n != map[string]int{withheld: 1}[c.want] {
			t.Errorf("%s: %d warnings:\n%s", name, n, lines)
		}
		if strings.Contains(lines, c.key) {
			t.Errorf("%s: the log has the key:\n%s", name, lines)
		}
	}
}

// quoting is an error that has a key.
type quoting struct{ key string }

func (e quoting) Error() string { return "no tenant for " + e.key }
