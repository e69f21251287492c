package protocol_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

const announcedLink = `<https://api.example.com/idempotency>; rel="describedby"`

// finished runs an exchange whose handler set the fields.
func finished(t *testing.T, a protocol.Admission, fields [][2]string, c protocol.Captured) protocol.Reply {
	t.Helper()
	wantRun(t, a)
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
			b := setup(t, protocol.Config{Engine: reprise.Config{Retention: c.engine}, Announce: protocol.Announcing{Expires: true}, Retention: c.guard})
			key := strconv.Itoa(i)
			admission := b.admit(key, "{}")
			time.Sleep(1500 * time.Millisecond) // the handler
			reply := finished(t, admission, nil, protocol.Captured{Status: 201})
			want := protocol.Field{Name: "Idempotency-Key-Expires", Value: fmt.Sprintf("@%d", time.Now().Add(c.want).Unix())}
			if !slices.Equal(reply.Added, []protocol.Field{want}) {
				t.Errorf("added %v, want %v", reply.Added, want)
			}
			time.Sleep(c.want / 2)
			if replay := b.admit(key, "{}").Response; !slices.Contains(slices.Collect(replay.Header.All()), want) {
				t.Errorf("replayed %v", slices.Collect(replay.Header.All()))
			}
		}
	})
}

// Only a response that retries get, and that was recorded before it left, says until when
// it is replayed.
func TestExpiryOfReplays(t *testing.T) {
	t.Parallel()
	const expires = "Idempotency-Key-Expires"
	long := protocol.Captured{Status: 200, Body: make([]byte, 9)}
	tooMany := make([][2]string, 65)
	for i := range tooMany {
		tooMany[i] = [2]string{"X-" + strconv.Itoa(i), "1"}
	}
	for name, c := range map[string]struct {
		cfg            protocol.Config
		fields         [][2]string
		captured       protocol.Captured
		first, replays bool
	}{
		"kept":                  {protocol.Config{}, nil, protocol.Captured{Status: 200}, true, true},
		"summarized":            {protocol.Config{}, nil, long, true, true},
		"too long":              {protocol.Config{Oversize: protocol.Unavailable}, nil, long, false, false},
		"too many fields":       {protocol.Config{}, tooMany, protocol.Captured{Status: 200}, false, false},
		"unkeepable":            {protocol.Config{}, nil, protocol.Captured{Status: 200, Unkeepable: true}, false, false},
		"released":              {protocol.Config{}, nil, protocol.Captured{Status: 503}, false, false},
		"a stream":              {protocol.Config{}, nil, protocol.Captured{Status: 200, Sent: true}, false, true},
		"a stream that is long": {protocol.Config{}, nil, protocol.Captured{Status: 200, Sent: true, Oversize: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.Announce.Expires, c.cfg.Limits.ResponseBody = true, 8
			b := setup(t, c.cfg)
			a := b.admit("k", "{}")
			var announced []protocol.Field
			if c.captured.Sent {
				announced = a.Exchange.Announce()
			}
			added := finished(t, a, c.fields, c.captured).Added
			if c.captured.Sent {
				added = announced // it has left: the fields of Finish are too late
			}
			if got := slices.ContainsFunc(added, func(f protocol.Field) bool { return f.Name == expires }); got != c.first {
				t.Errorf("the first response has the fields %v", added)
			}
			again := b.admit("k", "{}")
			if again.Exchange != nil {
				finished(t, again, nil, protocol.Captured{Status: 503})
			}
			if value, got := again.Response.Header.Get(expires); got != c.replays {
				t.Errorf("the retry gets %d that expires at %q", again.Response.Status, value)
			}
		})
	}
}

// The added fields never make a response too large to be kept.
func TestAddedFieldsGiveWayToTheHandlersOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Announce: protocol.Announcing{Expires: true, PolicyURL: "https://api.example.com/idempotency"}})
	for n, added := range map[int]int{62: 2, 63: 0, 64: 0} {
		var fields [][2]string
		for i := range n {
			fields = append(fields, [2]string{"X-" + strconv.Itoa(i), "1"})
		}
		key := strconv.Itoa(n)
		reply := finished(t, b.admit(key, "{}"), fields, protocol.Captured{Status: 200})
		if len(reply.Added) != added {
			t.Errorf("%d fields: added %v, want %d", n, reply.Added, added)
		}
		if replay := b.admit(key, "{}").Response; replay.Status != 200 || replay.Header.Len() != n+added+1 {
			t.Errorf("%d fields: replayed %d with %d", n, replay.Status, replay.Header.Len())
		}
	}
}

// The link is added to the result of Problems.Write, once.
func TestOwnProblemsLinkToThePolicy(t *testing.T) {
	t.Parallel()
	for name, links := range map[string][]string{"none": nil, "other": {"</a>; rel=help"}, "same": {announcedLink}} {
		b := setup(t, protocol.Config{
			Announce: protocol.Announcing{PolicyURL: "https://api.example.com/idempotency"},
			Problems: protocol.ProblemFormat{Write: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response {
				var fields []protocol.Field
				for _, l := range links {
					fields = append(fields, protocol.Field{Name: "Link", Value: l})
				}
				return protocol.Response{Header: protocol.NewHeader(fields...)}
			}},
		})
		var got []string
		for f := range b.admit("not a key", "{}").Response.Header.All() {
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

func fieldNames(fields []protocol.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// A response that is not known to be kept has no expiry: the store did not answer in
// time, or the handler runs unprotected.
func TestNoExpiryWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store store.Store
		mark  protocol.Field
	}{
		"unrecorded":  {&hooked{Store: memstore.New(), OnComplete: func(context.Context, store.CompleteRequest) error { return store.ErrUnknown }}, protocol.Field{Name: "Idempotency-Status", Value: "unrecorded"}},
		"unprotected": {unclaimed(store.ErrUnavailable), protocol.Field{Name: "Idempotency-Status", Value: "unprotected"}},
	} {
		for link, want := range map[string][]string{"": nil, "https://api.example.com/idempotency": {"Link"}} {
			for _, expires := range []bool{false, true} {
				engine := must(reprise.New(c.store, reprise.Config{ClaimTimeout: 10 * time.Millisecond, CompleteTimeout: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}))
				guard := must(protocol.Over(engine, protocol.Config{Announce: protocol.Announcing{Expires: expires, PolicyURL: link}, FailOpen: true}))
				a := (&bench{t, guard}).admit(fmt.Sprintf("%t-%t", link != "", expires), "{}")
				if name == "unprotected" {
					if got := fieldNames(a.Exchange.Announce()); !slices.Equal(got, want) {
						t.Errorf("%s, link %q, expires %t: announced %q, want %q", name, link, expires, got, want)
					}
				}
				reply := finished(t, a, nil, protocol.Captured{Status: 201})
				if got := fieldNames(reply.Added); reply.Mark != c.mark || !slices.Equal(got, want) {
					t.Errorf("%s, link %q, expires %t: marked %v, added %q, want %q", name, link, expires, reply.Mark, got, want)
				}
				_ = engine.Close(ended())
			}
		}
	}
}

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

func TestDescribeSeesTheRequest(t *testing.T) {
	t.Parallel()
	req := protocol.Request{
		Method: "POST", Target: "/orders?x=1", Host: "api.example",
		Header: http.Header{"Idempotency-Key": {"k-17"}, "Traceparent": {"00-4bf9"}},
	}
	route := func(_ context.Context, r *protocol.Request) string {
		return strings.Join([]string{r.Method, r.Path, r.Host, r.Header.Values("Traceparent")[0]}, " ")
	}
	for want, describe := range map[string]describer{"": nil, "POST /orders api.example 00-4bf9": route} {
		if got, events, _ := described(t, protocol.Config{Describe: describe}, req, "k-17"); got != want || len(events) > 0 {
			t.Errorf("%q, %v; want %q", got, events, want)
		}
	}
}

// TestDescribeKeepsNoKey: neither a record nor a log has a text with the key in it. It is
// replaced, with one warning, and the request goes on.
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
	for name, c := range map[string]struct {
		describe describer
		source   protocol.KeySource
		req      protocol.Request
		key      string
		want     string
		event    string
	}{
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
