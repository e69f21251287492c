package console_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// bench is a console over a new store, mounted below a prefix.
type bench struct {
	*testing.T

	store   *memstore.Store
	engine  *reprise.Engine
	guard   *protocol.Guard
	events  *console.Events
	handler http.Handler
	log     bytes.Buffer
	full    bool // the log cannot be written
	may     console.Permission
}

// Write writes to the log.
func (b *bench) Write(p []byte) (int, error) {
	if b.full {
		return 0, errors.New("no space left on device")
	}
	return b.log.Write(p)
}

const mount = "/company/idempotency"

func inTime(t *testing.T, test func(b *bench)) {
	t.Helper()
	inTimeWith(t, func(*protocol.Config) {}, test)
}

// inTimeWith is inTime with a change of the policy.
func inTimeWith(t *testing.T, change func(*protocol.Config), test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memstore.New(), events: console.NewEvents(), may: console.Look | console.Reveal | console.Resolve}
		var err error
		b.engine, err = reprise.New(b.store, reprise.Config{Observer: b.events})
		must(t, err)
		policy := protocol.Config{Label: "payments", Preset: reprise.AtMostOnce, Retention: 48 * time.Hour}
		change(&policy)
		b.guard, err = protocol.Over(b.engine, policy)
		must(t, err)
		access := func(*http.Request) (string, console.Permission) { return "ada", b.may }
		b.serve([]console.Store{{Name: "main", Store: b.store}}, access, console.Config{
			Title:   "Shop",
			Engines: []console.Engine{{Name: "main", Engine: b.engine}},
			Guards:  []*protocol.Guard{b.guard},
			Events:  b.events,
			Log:     slog.New(slog.NewTextHandler(b, nil)),
		})
		defer func() {
			if err := b.engine.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		test(b)
	})
}

// serve mounts a console over stores.
func (b *bench) serve(stores []console.Store, access console.Access, c console.Config) {
	b.Helper()
	pages, err := console.Handler(stores, access, c)
	must(b, err)
	b.handler = http.StripPrefix(mount, pages)
}

// lapsed claims an operation as a process that died, and waits until it has lapsed.
func (b *bench) lapsed(key string) (id store.ID, fence uint64) {
	b.Helper()
	id = store.DeriveID("tenant", "", key)
	granted, err := b.store.Claim(b.Context(), store.ClaimRequest{
		ID: id, Owner: store.NewOwner(), Policy: store.Policy{Label: "payments", AtMostOnce: true, Retention: 48 * time.Hour, Horizon: time.Hour}, Lease: time.Second,
	})
	if err != nil || granted.Outcome != store.Claimed {
		b.Fatalf("claim: %+v, %v", granted, err)
	}
	time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
	return id, granted.Fence
}

// answered records a response.
func (b *bench) answered(key string, r protocol.Response) store.ID {
	b.Helper()
	got := b.begin(operation(key))
	payload, err := operate.Encode(r)
	must(b, err)
	return b.completed(got, key, payload)
}

// begin begins an attempt.
func (b *bench) begin(op reprise.Operation) reprise.Result {
	b.Helper()
	got, err := b.engine.Begin(b.Context(), op)
	if err != nil || got.Attempt == nil {
		b.Fatalf("begin: %+v, %v", got, err)
	}
	return got
}

// completed records a payload as the response of an attempt.
func (b *bench) completed(got reprise.Result, key string, payload []byte) store.ID {
	b.Helper()
	if done, err := got.Attempt.Complete(reprise.Completion{Payload: payload}); err != nil || done.End != reprise.EndRecorded {
		b.Fatalf("complete: %+v, %v", done, err)
	}
	return store.DeriveID("tenant", "", key)
}

func operation(key string) reprise.Operation {
	return reprise.Operation{Scope: "tenant", Key: key, Label: "payments", Preset: reprise.AtMostOnce}
}

// page is a response of the console.
type page struct {
	status int
	header http.Header
	text   string // with the character references of HTML resolved
	raw    string
}

func (b *bench) send(r *http.Request) page {
	b.Helper()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return page{w.Code, w.Header(), html.UnescapeString(string(body)), string(body)}
}

func (b *bench) get(path string) page {
	b.Helper()
	return b.send(httptest.NewRequestWithContext(b.Context(), http.MethodGet, mount+path, http.NoBody))
}

func (b *bench) post(path string, form url.Values, header ...string) page {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, mount+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return b.send(r)
}

// reveal asks for the response of a record.
func (b *bench) reveal(id store.ID) page {
	b.Helper()
	return b.post(recordPage(id), url.Values{"action": {"reveal"}})
}

func (b *bench) want(what string, got page, status int, texts ...string) {
	b.Helper()
	if got.status != status {
		b.Errorf("%s: status %d, want %d: %s", what, got.status, status, got.text)
	}
	for _, text := range texts {
		if !strings.Contains(got.text, text) {
			b.Errorf("%s: the page does not say %q:\n%s", what, text, got.text)
		}
	}
}

func answerForm(id store.ID, fence uint64) url.Values {
	return url.Values{
		"action": {"answer"}, "state": {"lapsed"}, "fence": {strconv.FormatUint(fence, 10)}, "confirm": {id.Short()}, "reason": {"ledger entry 17"},
		"status": {"201"}, "content-type": {"application/json"}, "header": {"Location: /orders/17\r\nX-Two: a\r\nX-Two: b"},
		"body": {"{\"id\":\r\n17}"}, "retention": {"48h"},
	}
}

func recordPage(id store.ID) string { return "/records/main/" + id.String() }

func TestAnOperatorFindsAStuckOperationAndResolvesIt(t *testing.T) {
	inTime(t, func(b *bench) {
		id, fence := b.lapsed("stuck")
		b.want("home", b.get("/"), 200, "Needs a person", id.Short(), `href="./records/main/`+id.String()+`"`, "payments", "lapsed")
		b.want("list", b.get("/records?state=lapsed&label=payments&older=1s"), 200, id.Short(), "The end was reached")
		b.want("another label", b.get("/records?label=refunds"), 200, "No record here matches")
		b.want("record", b.get(recordPage(id)), 200, "ran out", "409 outcome-unknown, until the record is resolved", "Record this answer", `value="48h0m0s"`, "then remembered for")

		got := b.post(recordPage(id), answerForm(id, fence))
		if got.status != 303 || got.header.Get("Location") != id.String()+"?done=answered" {
			b.Fatalf("resolve: %d to %q: %s", got.status, got.header.Get("Location"), got.text)
		}
		b.want("resolved", b.get(recordPage(id)+"?done=answered"), 200,
			"The answer was recorded", "resolved by an operator", "UTC resolved", "Status <strong>201</strong>", "Idempotent-Replayed")
		b.want("revealed", b.reveal(id), 200, "/orders/17")
		for _, text := range []string{"operator=ada", "id=" + id.String(), `reason="ledger entry 17"`, "action=answer"} {
			if !strings.Contains(b.log.String(), text) {
				b.Errorf("the log does not have %q: %s", text, b.log.String())
			}
		}
		if strings.Contains(b.log.String(), "17}") {
			b.Errorf("the log has a part of the answer: %s", b.log.String())
		}

		retry, err := b.engine.Begin(b.Context(), operation("stuck"))
		if err != nil || retry.Outcome != reprise.Replayed {
			b.Fatalf("the retry: %+v, %v", retry, err)
		}
		answer, err := operate.Decode(retry.Payload)
		if location, _ := answer.Header.Get("Location"); err != nil || answer.Status != 201 || string(answer.Body) != "{\"id\":\n17}" || location != "/orders/17" {
			b.Errorf("the retry gets %+v, %v", answer, err)
		}
		b.want("home afterwards", b.get("/"), 200, "No stuck operation.")
	})
}

func TestAnOperatorFindsAnUnknownOutcomeWithItsReason(t *testing.T) {
	inTime(t, func(b *bench) {
		got := b.begin(operation("bank"))
		id, fence := got.Attempt.ID(), got.Attempt.View().Fence()
		must(b, got.Attempt.Unknown("the bank timed out"))
		b.want("home", b.get("/"), 200, "Needs a person", id.Short(), "unknown")
		b.want("list", b.get("/records?state=unknown"), 200, id.Short())
		b.want("another state", b.get("/records?state=lapsed"), 200, "No record here matches")
		b.want("record", b.get(recordPage(id)), 200, "the bank timed out", "The outcome of the last attempt is unknown", "409 outcome-unknown, until the record is resolved", "Record this answer", "may still run")
		form := answerForm(id, fence)
		if got := b.post(recordPage(id), form); got.status != 409 {
			b.Errorf("resolve what was shown as lapsed: %d: %s", got.status, got.text)
		}
		form.Set("state", "unknown")
		if got := b.post(recordPage(id), form); got.status != 303 {
			b.Fatalf("resolve: %d: %s", got.status, got.text)
		}
		if retry, err := b.engine.Begin(b.Context(), operation("bank")); err != nil || retry.Outcome != reprise.Replayed {
			b.Fatalf("the retry: %+v, %v", retry, err)
		}
	})
}

// TestARecordSaysWhichRequestItIsOf: its description, escaped, and the keys that its
// attempts pass to other systems.
func TestARecordSaysWhichRequestItIsOf(t *testing.T) {
	inTime(t, func(b *bench) {
		op := operation("described")
		op.Description = "POST /orders of <acme>"
		got := b.begin(op)
		id := got.Attempt.ID()
		key, err := got.Attempt.View().Key("pay ment")
		must(b, err)
		b.want("list", b.get("/records"), 200, op.Description)
		record := b.get(recordPage(id))
		b.want("record", record, 200, op.Description, "Name of the call")
		if strings.Contains(record.raw, "<acme>") || strings.Contains(record.text, key) {
			b.Errorf("the page is %s", record.raw)
		}
		b.want("key of a call", b.get(recordPage(id)+"?call=pay+ment"), 200, key, "to the call pay ment")
		if err := got.Attempt.Release(); err != nil {
			b.Error(err)
		}
	})
}

// A failure that was kept is shown as such. An operator who says that it may run again
// forgets it, with a line in the log before and after, and an event with its state.
func TestAKeptFailureIsForgotten(t *testing.T) {
	inTime(t, func(b *bench) {
		id := b.answered("kept", protocol.Response{Status: 503})
		record, err := b.store.Inspect(b.Context(), id)
		must(b, err)
		b.want("record", b.get(recordPage(id)), 200, "a failure is kept: 503", "The operation was completed.",
			"The next request with this key runs the operation, whatever it asks for, although the key would be remembered for")
		form := answerForm(id, record.Fence)
		form.Set("state", "completed")
		form.Set("again", "yes")
		for what, c := range map[string]struct {
			change func(url.Values)
			status int
			text   string
		}{
			"an answer":              {func(url.Values) {}, 422, "can only be forgotten"},
			"without the agreement":  {func(v url.Values) { v.Del("again") }, 422, "needs to be agreed to"},
			"in no state":            {func(v url.Values) { v.Del("state") }, 422, "no valid state"},
			"as a lapsed record":     {func(v url.Values) { v.Set("state", "lapsed") }, 409, "has changed since it was shown"},
			"as an unreadable one":   {func(v url.Values) { v.Set("state", "unreadable") }, 409, "has changed since it was shown"},
			"as a running one":       {func(v url.Values) { v.Set("state", "running") }, 409, "has changed since it was shown"},
			"with another fence":     {func(v url.Values) { v.Set("fence", "1") }, 409, "has changed since it was shown"},
			"without a confirmation": {func(v url.Values) { v.Del("confirm") }, 422, "type the first 12 digits"},
		} {
			wrong := maps.Clone(form)
			if what != "an answer" {
				wrong.Set("action", "forget")
			}
			c.change(wrong)
			b.want(what, b.post(recordPage(id), wrong), c.status, c.text)
			if record, err := b.store.Inspect(b.Context(), id); err != nil || record.State != store.StateCompleted {
				b.Fatalf("%s: the record is %+v, %v", what, record, err)
			}
		}
		b.log.Reset()
		form.Set("action", "forget")
		got := b.post(recordPage(id), form)
		if got.status != 303 || !strings.Contains(got.header.Get("Location"), "forgotten=") {
			b.Fatalf("forget: %d: %s", got.status, got.text)
		}
		_, query, _ := strings.Cut(got.header.Get("Location"), "?")
		b.want("list", b.get("/records?"+query), 200, "The record was forgotten. The next request with its key runs.")
		for _, line := range []string{"resolving a record", "a record was resolved"} {
			if !strings.Contains(b.log.String(), line+`" store=main operator=ada reason="ledger entry 17" id=`+id.String()+" state=completed label=payments attempt=1 fence="+strconv.FormatUint(record.Fence, 10)+" action=forget") {
				b.Errorf("the log does not say %q: %s", line, &b.log)
			}
		}
		again, err := b.engine.Begin(b.Context(), operation("kept"))
		if err != nil || again.Attempt == nil {
			b.Fatalf("the next request: %+v, %v", again, err)
		}
		b.completed(again, "kept", nil)
		b.want("record", b.get(recordPage(id)), 200, "resolved by ada, attempt 1: it was completed, and is forgotten: ledger entry 17", "the answer cannot be read", "Forget the record")
	})
}

func TestRefusedRequestsChangeNoRecord(t *testing.T) {
	inTime(t, func(b *bench) {
		id, fence := b.lapsed("stuck")
		for what, c := range map[string]struct {
			change func(url.Values)
			header []string
			status int
			text   string
		}{
			"another site's page":    {nil, []string{"Sec-Fetch-Site", "cross-site"}, 403, "another site"},
			"an old browser's":       {nil, []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, 403, "another site"},
			"no confirmation":        {func(v url.Values) { v.Del("confirm") }, nil, 422, "type the first 12 digits"},
			"another record's":       {func(v url.Values) { v.Set("confirm", "000000000000") }, nil, 422, "type the first 12 digits"},
			"no reason":              {func(v url.Values) { v.Set("reason", " ") }, nil, 422, "Give a reason"},
			"no action":              {func(v url.Values) { v.Del("action") }, nil, 422, "must either record"},
			"no state":               {func(v url.Values) { v.Del("state") }, nil, 422, "no valid state"},
			"no fence":               {func(v url.Values) { v.Del("fence") }, nil, 422, "no valid fence"},
			"another fence":          {func(v url.Values) { v.Set("fence", strconv.FormatUint(fence+1, 10)) }, nil, 409, "has changed since it was shown"},
			"a status that is none":  {func(v url.Values) { v.Set("status", "99") }, nil, 422, "The response cannot be kept"},
			"a status in words":      {func(v url.Values) { v.Set("status", "created") }, nil, 422, "not a number"},
			"a field without a name": {func(v url.Values) { v.Set("header", "nonsense") }, nil, 422, "header line"},
			"a field that is not kept": {
				func(v url.Values) { v.Set("header", "Content-Length: 3") }, nil, 422, "The response cannot be kept",
			},
			"a body for 204": {func(v url.Values) { v.Set("status", "204") }, nil, 422, "The response cannot be kept"},
			"a retention":    {func(v url.Values) { v.Set("retention", "a day") }, nil, 422, "not a duration"},
			"a long one":     {func(v url.Values) { v.Set("retention", "999999h") }, nil, 422, "Retention"},
			"a huge form":    {func(v url.Values) { v.Set("body", strings.Repeat("x", 3<<20)) }, nil, 413, "Nothing was changed"},
		} {
			form := answerForm(id, fence)
			if c.change != nil {
				c.change(form)
			}
			got := b.post(recordPage(id), form, c.header...)
			b.want(what, got, c.status, c.text)
			if c.status == 422 && !strings.Contains(got.text, "ledger entry 17") && what != "no reason" {
				b.Errorf("%s: what was typed is lost", what)
			}
			if record, err := b.store.Inspect(b.Context(), id); err != nil || record.State != store.StateLapsed {
				b.Fatalf("%s: the record is %+v, %v", what, record, err)
			}
		}
		b.may = console.Look
		b.want("read-only", b.post(recordPage(id), answerForm(id, fence)), 403, "read-only")
		got := b.get(recordPage(id))
		b.want("read-only page", got, 200, "Read-only")
		if strings.Contains(got.raw, `method="post"`) {
			b.Error("a read-only page has a form that writes")
		}
	})
}

func TestARecordCannotScriptThePage(t *testing.T) {
	inTime(t, func(b *bench) {
		const script = `</pre><script>alert(1)</script><img src=x onerror=alert(1)>`
		id := b.answered("hostile", protocol.Response{
			Status: 200, Body: []byte(script),
			Header: protocol.NewHeader(protocol.Field{Name: "X-Evil", Value: script}, protocol.Field{Name: "Content-Type", Value: "text/html"}),
		})
		hidden := b.get(recordPage(id))
		b.want("hidden", hidden, 200, "Show its fields and body")
		shown := b.reveal(id)
		b.want("shown", shown, 200, script)
		for _, got := range []page{hidden, shown} {
			if strings.Contains(strings.Split(got.raw, "</main>")[0], "<script") || strings.Contains(got.raw, "<img") {
				b.Errorf("the page holds what the record holds:\n%s", got.raw)
			}
			if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'sha256-") || strings.Contains(csp, "unsafe") {
				b.Errorf("policy %q", csp)
			}
			if csp := got.header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
				b.Errorf("policy %q: another site may frame the page", csp)
			}
			if options := got.header.Get("X-Frame-Options"); options != "DENY" {
				b.Errorf("X-Frame-Options %q: another site may frame the page", options)
			}
		}
		if strings.Contains(hidden.text, "</pre><script>alert(1)</script><img src=x onerror=alert(1)></pre>") {
			b.Error("the body is shown before somebody asks for it")
		}
		if !strings.Contains(b.log.String(), "revealing a response") || strings.Contains(b.log.String(), "alert") {
			b.Errorf("the log: %s", b.log.String())
		}
		binary := b.answered("binary", protocol.Response{Status: 200, Body: []byte("\x1b[2J\x00\xff")})
		b.want("binary", b.reveal(binary), 200, "1b 5b 32 4a 00 ff", "not text")
		huge := b.answered("huge", protocol.Response{Status: 200, Body: bytes.Repeat([]byte("é"), 1<<20)})
		if got := b.reveal(huge); len(got.raw) > 200<<10 || !strings.Contains(got.text, "Only the beginning is shown") {
			b.Errorf("a page of %d bytes for a huge body", len(got.raw))
		}
	})
}

func TestBadAddressesNameTheMistake(t *testing.T) {
	inTime(t, func(b *bench) {
		id, _ := b.lapsed("stuck")
		for path, c := range map[string]struct {
			status int
			text   string
		}{
			"/records/main/" + strings.Repeat("0", 64):  {404, "There is no record"},
			"/records/main/" + id.Short():               {404, "64 hexadecimal digits"},
			"/records/other/" + id.String():             {404, "no store of this name"},
			"/records?store=other":                      {404, "no store of this name"},
			"/records?state=asleep":                     {400, "none of stuck, lapsed"},
			"/records?older=yesterday":                  {400, "not a duration"},
			"/records?after=redis-0-0-":                 {422, "not a cursor of this store"},
			"/records?label=" + strings.Repeat("x", 33): {422, "Label"},
			"/nowhere": {404, "no such page"},
			"/records/main/" + id.String() + "/somewhere": {404, "no such page"},
		} {
			b.want(path, b.get(path), c.status, c.text)
		}
	})
}

func TestAListingIsShownInPages(t *testing.T) {
	inTime(t, func(b *bench) {
		for n := range 120 {
			b.answered(strconv.Itoa(n), protocol.Response{Status: 200})
		}
		links := func(p page) []string {
			parts := strings.Split(p.raw, `href="./records/main/`)[1:]
			for i := range parts {
				parts[i] = parts[i][:64]
			}
			return parts
		}
		seen := map[string]bool{}
		path := "/records?state=completed"
		for pages := 0; path != ""; pages++ {
			got := b.get(path)
			b.want(path, got, 200)
			for _, id := range links(got) {
				if seen[id] {
					b.Errorf("%s is listed twice", id)
				}
				seen[id] = true
			}
			path = ""
			if _, next, ok := strings.Cut(got.text, `rel="next" href="./records?`); ok {
				path, _, _ = strings.Cut("/records?"+next, `"`)
			}
			if pages > 4 {
				b.Fatal("the listing does not end")
			}
		}
		if len(seen) != 120 {
			b.Errorf("%d records are listed, want 120", len(seen))
		}
	})
}

func TestOverviewCountsEventsOfThisProcess(t *testing.T) {
	inTime(t, func(b *bench) {
		id := b.answered("one", protocol.Response{Status: 200})
		for range 3 {
			if got, err := b.engine.Begin(b.Context(), operation("one")); err != nil || got.Outcome != reprise.Replayed {
				b.Fatalf("%+v, %v", got, err)
			}
		}
		b.want("home", b.get("/"), 200, "75 %", "3 of 4 answers", "1 ran, 3 were replayed")
		b.want("record", b.get(recordPage(id)), 200, "claimed, attempt 1", "replayed")
		time.Sleep(25 * time.Hour) //nolint:forbidigo // the clock of the bubble
		b.want("a day later", b.get("/"), 200, "0 ran, 0 were replayed")
	})
}

func TestPoliciesShowTheOptionsAsTheyRun(t *testing.T) {
	inTime(t, func(b *bench) {
		b.answered("one", protocol.Response{Status: 200})
		if got, err := b.engine.Begin(b.Context(), operation("one")); err != nil || got.Outcome != reprise.Replayed {
			b.Fatalf("%+v, %v", got, err)
		}
		b.want("policies", b.get("/policies"), 200, "payments", "at-most-once", "Idempotency-Key", "50.0 %", "POST, PATCH", "2 days", "1.0 MiB at most")
	})
}

func TestOnlyConfiguredHostsAreServed(t *testing.T) {
	t.Parallel()
	pages, err := console.Handler([]console.Store{{Name: "main", Store: memstore.New()}}, look, console.Config{Hosts: []string{"127.0.0.1:8080"}})
	must(t, err)
	for host, want := range map[string]int{"127.0.0.1:8080": 200, "evil.example:8080": 421} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

// faulty is a store that does something before it looks, and answers with its error.
type faulty struct {
	*memstore.Store

	list    func(context.Context) error
	inspect func(context.Context, store.ID) error
}

func (f faulty) List(ctx context.Context, q store.Query) (store.Page, error) {
	if f.list != nil {
		if err := f.list(ctx); err != nil {
			return store.Page{}, err
		}
	}
	return f.Store.List(ctx, q)
}

func (f faulty) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	if f.list != nil {
		if err := f.list(ctx); err != nil {
			return nil, err
		}
	}
	return f.Store.Count(ctx, open)
}

func (f faulty) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if f.inspect != nil {
		if err := f.inspect(ctx, id); err != nil {
			return store.Record{}, err
		}
	}
	return f.Store.Inspect(ctx, id)
}

func TestUnreachableStoreHidesNoOther(t *testing.T) {
	t.Parallel()
	down := faulty{memstore.New(), func(context.Context) error { return store.ErrUnavailable }, func(context.Context, store.ID) error { return store.ErrUnavailable }}
	pages, err := console.Handler([]console.Store{{Name: "down", Store: down}, {Name: "up", Store: memstore.New()}}, look, console.Config{})
	must(t, err)
	for path, c := range map[string]struct {
		status int
		text   string
	}{
		"/":                   {200, "There is no record at all in this store"},
		"/records?store=down": {502, "could not be read"},
		"/records?store=up":   {200, "The end was reached"},
		"/records/down/" + strings.Repeat("1", 64): {502, "could not be read"},
	} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || strings.Contains(w.Body.String(), "No stuck operation") {
			t.Errorf("%s: %d: %s", path, w.Code, w.Body.String())
		}
	}
}

func TestHandlerRefusesInvalidConfigurations(t *testing.T) {
	t.Parallel()
	good := console.Store{Name: "main", Store: memstore.New()}
	for what, stores := range map[string][]console.Store{
		"no store":           nil,
		"a nil store":        {{Name: "main"}},
		"a bad name":         {{Name: "../x", Store: good.Store}},
		"dots":               {{Name: "..", Store: good.Store}},
		"two of one name":    {good, good},
		"without inspection": {{Name: "main", Store: struct{ store.Store }{good.Store}}},
	} {
		if _, err := console.Handler(stores, look, console.Config{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	for what, c := range map[string]console.Config{
		"a nil engine":      {Engines: []console.Engine{{}}},
		"a nil guard":       {Guards: []*protocol.Guard{nil}},
		"an origin's path":  {TrustedOrigins: []string{"https://ops.example/console"}},
		"a host, no origin": {TrustedOrigins: []string{"ops.example"}},
	} {
		if _, err := console.Handler([]console.Store{good}, look, c); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	if _, err := console.Handler([]console.Store{good}, nil, console.Config{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("nil access: %v, want ErrInvalid", err)
	}
}

// A recorded result that is no plain response is shown as far as it can be read: the head
// and the name of a body in a blob store, the kind of a result of Do, and of a sealed
// response no more than its clear parts.
func TestAnswersOfEveryKindAreShown(t *testing.T) {
	inTime(t, func(b *bench) {
		offloaded, err := hex.DecodeString("010800c80001000000190000002d00000c0008436f6e74656e742d54797065746578742f637376" +
			"01000000000000002bd7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e5920000512bb00551b1")
		must(b, err)
		value, err := job.EncodeResult(nil, "private", nil)
		must(b, err)
		failure, err := job.EncodeResult(nil, 0, errors.New("the bank refused"))
		must(b, err)
		secret, err := protocol.NewSecret("2026-11", make([]byte, 32))
		must(b, err)
		encoded, err := operate.Encode(protocol.Response{
			Status: 201, Body: []byte("a private body"), Header: protocol.NewHeader(protocol.Field{Name: "Location", Value: "/orders/17"}),
		})
		must(b, err)
		sealed := func(key string, clearHead bool) []byte {
			payload, err := protocol.Sealing{Secret: secret, ClearHead: clearHead}.Seal(encoded, key, store.DeriveID("tenant", "", key), store.Fingerprint{})
			must(b, err)
			return payload
		}
		const unopened = `is sealed with the secret "2026-11", which Config.Seal does not have`
		for key, c := range map[string]struct {
			payload []byte
			shown   []string
			hidden  string
		}{
			"in a blob store": {offloaded, []string{
				"The body is in the blob store, as 20261122/d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592", "Status <strong>200</strong>, body of 43 B", "text/csv",
			}, `class="body"`},
			"a value of Do":           {value, []string{"Not an HTTP answer: a result of job.Do, a value of 9 bytes", "500 record-corrupt: the record has a result of job.Do"}, "cannot be read"},
			"a failure of Do":         {failure, []string{`state failure">a failure is kept<`}, "cannot be read"},
			"a result that broke off": {failure[:len(failure)-1], []string{`state failure">the answer cannot be read<`}, "a failure is kept"},
			"sealed":                  {sealed("sealed", false), []string{"The answer is sealed", "500 record-corrupt", unopened}, "/orders/17"},
			"sealed but for its head": {sealed("sealed but for its head", true), []string{"The answer is sealed", "500 record-corrupt", unopened, "/orders/17", "a sealed body"}, "private"},
		} {
			shown := b.reveal(b.completed(b.begin(operation(key)), key, c.payload))
			b.want(key, shown, 200, c.shown...)
			if strings.Contains(shown.text, c.hidden) || strings.Contains(shown.text, "private") {
				b.Errorf("%s: the page has %q or what is private: %s", key, c.hidden, shown.text)
			}
		}
	})
}

// must fails the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
