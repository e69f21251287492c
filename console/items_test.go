package console_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A key is found as a transcript prints it, in its quotes, and as the client knows it.
func TestFindReadsAKeyWithItsQuotes(t *testing.T) {
	inTime(t, func(b *bench) {
		for typed, key := range map[string]string{
			`"order-17"`: "order-17", `order-17`: "order-17", "\"order-17\"\n": "order-17", `"a\"b"`: `a"b`,
		} {
			want := "records/main/" + store.DeriveID("tenant", "", key).String()
			got := b.post("/find", url.Values{"store": {"main"}, "scope": {"tenant"}, "key": {typed}})
			if got.status != 303 || got.header.Get("Location") != want {
				b.Errorf("%s: %d to %q, want %q", typed, got.status, got.header.Get("Location"), want)
			}
		}
		b.want("a key that is none", b.post("/find", url.Values{"store": {"main"}, "scope": {"tenant"}, "key": {`"order`}}), 422, "key")
	})
}

// Logs show 12 digits of an ID. 8 or more of them are enough to find it, unless several
// records begin with them: then these are listed.
func TestFindTakesTheBeginningOfAnID(t *testing.T) {
	inTime(t, func(b *bench) {
		id, _ := b.lapsed("stuck")
		twins := []store.ID{{0xaa, 0xbb, 0xcc, 0xdd, 1}, {0xaa, 0xbb, 0xcc, 0xdd, 2}}
		for _, twin := range twins {
			b.claimed(twin, store.ClaimRequest{})
		}
		find := func(digits string) page { return b.post("/find", url.Values{"store": {"main"}, "id": {digits}}) }
		for _, digits := range []string{id.Short(), strings.ToUpper(id.Short()), " " + id.String()[:8] + " ", id.String()} {
			if got := find(digits); got.status != 303 || got.header.Get("Location") != "records/main/"+id.String() {
				b.Errorf("%q: %d to %q: %s", digits, got.status, got.header.Get("Location"), got.text)
			}
		}
		b.want("two", find("aabbccdd"), 422, "Several records begin with these digits", "records/main/"+twins[0].String(), "records/main/"+twins[1].String())
		b.want("seven", find(id.String()[:7]), 422, "at least the first 8")
		b.want("none", find("0123456789ab"), 404, "No record begins with these digits")
	})
}

// claimed claims an operation as another process does, for an hour unless r says more.
func (b *bench) claimed(id store.ID, r store.ClaimRequest) store.Owner {
	b.Helper()
	r.ID, r.Owner, r.Retention = id, store.NewOwner(), time.Hour
	if r.Lease == 0 {
		r.Lease = time.Hour
	}
	if granted, err := b.store.Claim(b.Context(), r); err != nil || granted.Outcome != store.Claimed {
		b.Fatalf("claim: %+v, %v", granted, err)
	}
	return r.Owner
}

// A policy that refuses unsealed answers would never replay one that an operator types:
// it is refused before it is written, or logged.
func TestAnswerThatThePolicyCannotReplayIsRefused(t *testing.T) {
	secret, err := protocol.NewSecret("2026-11", bytes.Repeat([]byte("s"), 32))
	if err != nil {
		t.Fatal(err)
	}
	strict := func(c *protocol.Config) { c.Seal = protocol.Sealing{Secret: secret, Strict: true} }
	inTimeWith(t, strict, func(b *bench) {
		id, fence := b.lapsed("stuck")
		form := answerForm(id, fence)
		b.want("answer", b.post(recordPage(id), form), 422, "its policy could not replay this answer", "Nothing was changed", "ledger entry 17")
		form.Set("record", id.String()+" lapsed "+form.Get("fence"))
		form.Set("store", "main")
		form.Set("confirm", "answer 1")
		b.want("several", b.post("/several", form), 200, "0 of 1 records were resolved", "its policy could not replay this answer")
		if record, err := b.store.Inspect(b.Context(), id); err != nil || record.State != store.StateLapsed || b.log.Len() > 0 {
			b.Errorf("the record is %+v, %v, and the log %q", record, err, &b.log)
		}
	})
}

// The page of a record and the guard give the same answer.
func TestPageSaysWhatTheClientGets(t *testing.T) {
	inTimeWith(t, func(c *protocol.Config) { c.Retention, c.Horizon = time.Hour, time.Hour }, func(b *bench) {
		request := func() protocol.Admission {
			return b.guard.Admit(b.Context(), protocol.Request{Method: http.MethodPost, Path: "/pay", Header: http.Header{"Idempotency-Key": {"k"}}},
				func() (string, error) { return "tenant", nil })
		}
		first := request()
		if first.Exchange == nil {
			b.Fatalf("admitted as %+v", first)
		}
		b.want("running", b.get(recordPage(store.DeriveID("tenant", "", "k"))), 200, "409 in-progress")
		first.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("paid")})
		for _, want := range []string{"201, marked Idempotent-Replayed: true, with a body of 4 bytes", "409 result-expired, until the record ends"} {
			b.want("page", b.get(recordPage(store.DeriveID("tenant", "", "k"))), 200, want)
			got := request()
			if status := strconv.Itoa(got.Response.Status); got.Exchange != nil || !strings.HasPrefix(want, status) {
				b.Errorf("the page says %q, the client gets %s", want, status)
			}
			time.Sleep(time.Hour + time.Minute) //nolint:forbidigo // the clock of the bubble
		}
	})
}

// A listing shows the status of each response, and those of failures in red.
func TestListShowsKeptFailures(t *testing.T) {
	inTime(t, func(b *bench) {
		for status, failed := range map[int]bool{200: false, 303: false, 404: true, 503: true} {
			id := b.answered(strconv.Itoa(status), protocol.Response{Status: status})
			got := b.get("/records?text=" + id.Short())
			b.want("list", got, 200, fmt.Sprintf(">%d</span>", status))
			if red := strings.Contains(got.raw, fmt.Sprintf(`<span class="state failure">%d</span>`, status)); red != failed {
				b.Errorf("%d is shown as a failure: %t", status, red)
			}
			if red := strings.Contains(b.get(recordPage(id)).text, "a failure is kept"); red != failed {
				b.Errorf("the page of %d says that a failure is kept: %t", status, red)
			}
		}
	})
}

func TestListIsFilteredByStatePolicyAndText(t *testing.T) {
	inTime(t, func(b *bench) {
		ids := map[string]store.ID{}
		for name, r := range map[string]store.ClaimRequest{
			"acme":    {Policy: store.Policy{Label: "payments"}, Description: "POST /payments of Acme"},
			"initech": {Policy: store.Policy{Label: "refunds"}, Description: "POST /refunds of Initech", Lease: time.Second},
		} {
			ids[name] = store.DeriveID("tenant", "", name)
			b.claimed(ids[name], r)
		}
		got, err := b.engine.Begin(b.Context(), operation("bank"))
		if err != nil || got.Attempt == nil {
			b.Fatal(err)
		}
		if err := got.Attempt.Unknown("Bank closed at five"); err != nil {
			b.Fatal(err)
		}
		ids["bank"] = got.Attempt.ID()
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		for query, want := range map[string]string{
			"":                               "acme initech bank",
			"text=acme":                      "acme",
			"text=POST+/":                    "acme initech",
			"text=closed":                    "bank",
			"text=" + ids["bank"].Short():    "bank",
			"text=nothing":                   "",
			"label=refunds":                  "initech",
			"label=refunds&text=acme":        "",
			"state=stuck":                    "initech bank",
			"state=lapsed":                   "initech",
			"state=running&text=of&older=1s": "acme",
		} {
			page := b.get("/records?" + query)
			b.want(query, page, 200)
			for name, id := range ids {
				if shown := strings.Contains(page.raw, id.String()); shown != strings.Contains(want, name) {
					b.Errorf("%q: %s is shown: %t", query, name, shown)
				}
			}
		}
	})
}

// Several records are resolved by one form. Each is fenced and logged as if it were
// alone, and the page has the result of each.
func TestSeveralRecordsAreResolvedByOneForm(t *testing.T) {
	inTime(t, func(b *bench) {
		first, fence := b.lapsed("first")
		second, _ := b.lapsed("second")
		gone, goneFence := b.lapsed("gone")
		kept := b.answered("kept", protocol.Response{Status: 503})
		value := func(id store.ID) string {
			record, err := b.store.Inspect(b.Context(), id)
			if err != nil {
				b.Fatal(err)
			}
			return fmt.Sprint(id, " ", record.State, " ", record.Fence)
		}
		form := url.Values{"store": {"main"}, "record": {value(first), value(second), value(gone), value(kept)}}
		got := b.get("/records?all=1")
		for _, picked := range form["record"] {
			if !strings.Contains(got.raw, `value="`+picked+`" aria-label="Select `+picked[:12]+`" checked`) {
				b.Errorf("%s is not selected: %s", picked, got.raw)
			}
		}
		if err := b.store.Resolve(b.Context(), gone, store.Resolution{State: store.StateLapsed, Fence: goneFence, Forget: true}); err != nil {
			b.Fatal(err)
		}
		b.want("form", b.post("/several", form), 200, first.Short(), second.Short(), kept.Short(), "There is no record with this ID", "type <code>answer 3</code>", "409 outcome-unknown")

		typed := answerForm(first, fence)
		for _, name := range []string{"status", "content-type", "header", "body", "reason", "action"} {
			form.Set(name, typed.Get(name))
		}
		form.Set("body-"+second.String(), `{"id":18}`)
		for what, change := range map[string]func(url.Values){
			"another number":    func(v url.Values) { v.Set("confirm", "answer 4") },
			"another action":    func(v url.Values) { v.Set("confirm", "forget 3") },
			"no reason":         func(v url.Values) { v.Set("confirm", "answer 3"); v.Del("reason") },
			"no status":         func(v url.Values) { v.Set("confirm", "answer 3"); v.Set("status", "") },
			"no record":         func(v url.Values) { v.Set("confirm", "answer 0"); v.Del("record") },
			"what is no record": func(v url.Values) { v.Set("record", first.String()) },
			"too many":          func(v url.Values) { v["record"] = make([]string, 250) },
		} {
			wrong := maps.Clone(form)
			change(wrong)
			b.want(what, b.post("/several", wrong), 422, "Nothing was changed")
		}
		form.Set("confirm", "answer 3")
		b.may = console.Look | console.Reveal
		b.want("read-only", b.post("/several", form), 403, "read-only")
		b.may |= console.Resolve
		b.full = true
		b.want("without a log", b.post("/several", form), 200, "0 of 4 records were resolved", "The log could not be written")
		b.full = false
		if b.log.Len() > 0 {
			b.Errorf("the log: %s", &b.log)
		}

		b.want("answer", b.post("/several", form), 200, "2 of 4 records were resolved", "The answer was recorded", "it can only be forgotten", "There is no record with this ID")
		for _, key := range []string{"first", "second"} {
			retry, err := b.engine.Begin(b.Context(), operation(key))
			if body := map[string]string{"first": "{\"id\":\n17}", "second": `{"id":18}`}[key]; err != nil || !strings.Contains(string(retry.Payload), body) {
				b.Errorf("%s: the retry gets %q, %v", key, retry.Payload, err)
			}
		}
		if n := strings.Count(b.log.String(), `operator=ada reason="ledger entry 17"`); n != 4 {
			b.Errorf("%d lines, want one before and after each change: %s", n, &b.log)
		}
		b.want("answer again", b.post("/several", form), 422, "To confirm")

		form = url.Values{"store": {"main"}, "record": {value(kept)}, "action": {"forget"}, "reason": {"nothing was sent"}, "confirm": {"forget 1"}}
		b.want("form", b.post("/several", url.Values{"store": {"main"}, "record": form["record"]}), 200, "may then run a second time", "<code>forget 1</code>")
		b.want("forget", b.post("/several", form), 200, "0 of 1", "needs to be agreed to")
		form.Set("again", "yes")
		b.want("forget", b.post("/several", form), 200, "1 of 1", "It was forgotten")
		b.want("trail", b.get("/trail"), 200, "ada", "nothing was sent", "forgot it, as it was completed", "recorded an answer, as it was lapsed", kept.Short())
	})
}

// The trail of a console without engines and events has the resolutions made by it.
func TestTrailNeedsNoEngine(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	access := func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }
	pages, err := console.Handler([]console.Store{{Name: "main", Store: st}}, access, console.Config{})
	if err != nil {
		t.Fatal(err)
	}
	id := store.DeriveID("tenant", "", "k")
	granted, err := st.Claim(t.Context(), store.ClaimRequest{ID: id, Owner: store.NewOwner(), Policy: store.Policy{Retention: time.Hour}, Lease: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for record := (store.Record{}); record.State != store.StateLapsed; {
		if record, err = st.Inspect(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	form := answerForm(id, granted.Fence)
	form.Set("retention", "")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, recordPage(id), strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	if w.Code != 303 {
		t.Fatalf("resolve: %d: %s", w.Code, w.Body)
	}
	for _, path := range []string{"/trail", recordPage(id)} {
		w = httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if !strings.Contains(w.Body.String(), "ada") || !strings.Contains(w.Body.String(), "ledger entry 17") {
			t.Errorf("%s does not say who, and why: %s", path, w.Body)
		}
	}
}

// slow is a store whose listing takes longer than a page counts.
type slow struct{ *memstore.Store }

func (s slow) List(ctx context.Context, q store.Query) (store.Page, error) {
	time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
	page, err := s.Store.List(ctx, q)
	page.Next, page.Total = "more", 7000
	return page, err
}

// The overview counts the records of all processes by their policy, and says "at least"
// where it stopped early.
func TestOverviewCountsTheRecordsOfAllProcesses(t *testing.T) {
	inTime(t, func(b *bench) {
		b.claimed(store.ID{1}, store.ClaimRequest{Policy: store.Policy{Label: "refunds"}})
		b.lapsed("stuck")
		b.answered("done", protocol.Response{Status: 200})
		counted := func(p page) string { return strings.Join(strings.Fields(p.text), " ") }
		row := func(label, most string, running, stuck, completed int) string {
			return fmt.Sprintf(`<th scope="row">%s</th> <td data-label="Running">%s%d</td> <td data-label="Stuck">%[2]s%[4]d</td> <td data-label="Completed">%[2]s%[5]d</td>`,
				label, most, running, stuck, completed)
		}
		text := counted(b.get("/"))
		if !strings.Contains(text, row("payments", "", 0, 1, 1)) || !strings.Contains(text, row("refunds", "", 1, 0, 0)) {
			b.Errorf("the overview: %s", text)
		}
		pages, err := console.Handler([]console.Store{{Name: "main", Store: slow{b.store}}}, look, console.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.handler = http.StripPrefix(mount, pages)
		got := b.get("/")
		if text := counted(got); !strings.Contains(text, row("refunds", "≥ ", 1, 0, 0)) {
			b.Errorf("the overview of a large store: %s", text)
		}
		b.want("large", got, 200, "at least so many, counted in 3 of about 7000")
	})
}

// A page says when it was read. One that was asked for refreshes itself; the answer to a
// form, or one with a notice, never does.
func TestOnlyReadPagesRefresh(t *testing.T) {
	inTime(t, func(b *bench) {
		stuck, _ := b.lapsed("stuck")
		done := b.answered("done", protocol.Response{Status: 200})
		read := "Read at <time datetime=\"" + time.Now().UTC().Format(time.RFC3339)
		for _, path := range []string{"/", "/records", "/trail", recordPage(stuck)} {
			got := b.get(path)
			b.want(path, got, 200, read)
			if strings.Count(got.raw, "<script>") != 1 || strings.Contains(got.raw, "http-equiv") {
				b.Errorf("%s does not refresh itself: %s", path, got.raw)
			}
		}
		for what, got := range map[string]page{
			"find":     b.get("/find"),
			"a notice": b.get(recordPage(done) + "?done=answered"),
			"revealed": b.reveal(done),
			"refused":  b.post(recordPage(stuck), url.Values{"action": {"forget"}}),
			"several":  b.post("/several", url.Values{"store": {"main"}, "record": {done.String() + " completed 1"}}),
			"not here": b.get("/nowhere"),
		} {
			if strings.Contains(got.raw, "<script") {
				b.Errorf("%s refreshes itself", what)
			}
		}
	})
}

// The events of resolutions are kept apart, so that no flood of others pushes them out.
func TestTrailOutlivesOtherEvents(t *testing.T) {
	inTime(t, func(b *bench) {
		id, fence := b.lapsed("stuck")
		if got := b.post(recordPage(id), answerForm(id, fence)); got.status != 303 {
			b.Fatalf("resolve: %d", got.status)
		}
		for range 5000 {
			b.events.Observe(b.Context(), reprise.Event{Kind: reprise.EventRenewed})
		}
		b.want("trail", b.get("/trail"), 200, id.Short(), "ledger entry 17")
		for n := range 600 {
			b.events.Observe(b.Context(), reprise.Event{Kind: reprise.EventResolved, Reason: fmt.Sprintf("number %d.", n)})
		}
		got := b.get("/trail")
		b.want("trail", got, 200, "number 599.", "number 100.")
		if strings.Contains(got.text, "number 99.") || strings.Index(got.text, "number 599.") > strings.Index(got.text, "number 100.") {
			b.Error("the trail is not the newest 500, the newest first")
		}
	})
}
