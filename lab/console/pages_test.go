package console

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// records opens a shop of records that tests write, and a browser that ada uses.
func records(t *testing.T) (*shop, *browser) {
	t.Helper()
	s := openShop(t, servers.Redis.Shared(t).URL(), labtest.RedisPrefix(), "http://127.0.0.1:1", io.Discard)
	b := openBrowser(t)
	b.run(network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"X-Forwarded-User": "ada"}))
	return s, b
}

// claim writes a record that lapses unless it ends.
func (s *shop) claim(id store.ID, lease time.Duration, request string) store.ClaimRequest {
	s.Helper()
	c := store.ClaimRequest{
		ID: id, Owner: store.NewOwner(), Lease: lease, Description: request, Policy: store.Policy{Label: "payments", AtMostOnce: true, Retention: time.Hour},
	}
	if _, err := s.store.Claim(s.Context(), c); err != nil {
		s.Fatal(err)
	}
	return c
}

// unknown writes a record whose handler does not know its outcome.
func (s *shop) unknown(key, request string) store.ID {
	s.Helper()
	c := s.claim(idOf(key), time.Minute, request)
	labtest.Must(s, s.store.Unknown(s.Context(), store.UnknownRequest{ID: c.ID, Owner: c.Owner, Reason: "the bank did not answer within 10 s"}))
	return c.ID
}

// done writes a record with a response.
func (s *shop) done(key string, status int, body string) string {
	s.Helper()
	c := s.claim(idOf(key), time.Minute, "")
	payload, err := operate.Encode(protocol.Response{Status: status, Body: []byte(body), Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/html"})})
	labtest.Must(s, err)
	labtest.Must(s, s.store.Complete(s.Context(), store.CompleteRequest{ID: c.ID, Owner: c.Owner, Payload: payload, Policy: c.Policy}))
	return "records/main/" + c.ID.String()
}

func idOf(key string) store.ID { return store.DeriveID("acme", "", key) }

// Every page, light and dark, wide and on a phone, passes axe-core and does not scroll
// sideways; with -short each colour and each width once. What a record holds runs no
// script. On a phone a listing is made of cards, with everything within the width of the
// screen.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	axe := axeSource(t)
	s, b := records(t)
	lapsed := s.claim(idOf("lapsed"), time.Millisecond, "")
	unknown := s.unknown("pay-1", "POST /payments of acme, 42.00 EUR")
	s.unknown("pay-2", "POST /payments of a customer with the long name that some customers have, 17,500.00 EUR")
	s.claim(idOf("ruined"), time.Minute, "")
	labtest.Must(t, s.client.Set(t.Context(), labtest.RedisKey(s.prefix, idOf("ruined")), "what a later release wrote", time.Hour).Err())
	hostile := s.done("hostile", 200, `</pre></main><script>alert(1)</script><img src=x onerror="alert(1)"><svg onload="alert(1)">`)
	open := func(path string, then ...chromedp.Action) func() {
		return func() {
			b.visit(s.console(path))
			b.run(then...)
		}
	}
	several := open("records?state=stuck&all=1", chromedp.Click("button[form=several]"), chromedp.WaitVisible("ul.several"))
	for name, show := range map[string]func(){
		"home":       open(""),
		"list":       open("records"),
		"lapsed":     open("records/main/" + lapsed.ID.String()),
		"unknown":    open("records/main/" + unknown.String()),
		"unreadable": open("records/main/" + idOf("ruined").String()),
		"kept":       open(s.done("failed", 503, "")),
		"revealed":   open(hostile, chromedp.Click("button[value=reveal]"), chromedp.WaitVisible("pre.body")),
		"several":    several,
		"refused": func() {
			several()
			b.run(chromedp.SetValue("#reason-forget", "x"), chromedp.SetValue("#confirm-forget", "x"), chromedp.Click("#again"), chromedp.Click("button.danger"), chromedp.WaitVisible(".notice.failed"))
		},
		"find":     open("find"),
		"policies": open("policies"),
		"trail":    open("trail"),
		"failure":  open("records/main/" + strings.Repeat("0", 64)),
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 375} {
				if testing.Short() && (width == 375) != (scheme == "dark") {
					continue // the colours do not depend on the width
				}
				b.looks(width, scheme)
				show()
				b.axe(axe)
				if b.scrollsSideways() {
					t.Errorf("%s scrolls sideways at %d", name, width)
				}
			}
		}
	}
	for _, problem := range b.reported() {
		if !strings.Contains(problem, "a status of 4") { // of a refusal
			t.Errorf("the pages reported %s", problem)
		}
	}
	for _, width := range []int64{1024, 800, 769, 650, 375} {
		b.looks(width, "light")
		b.visit(s.console("records"))
		if b.scrollsSideways() {
			t.Errorf("the list scrolls sideways at %d", width)
		}
	}
	for _, text := range []string{unknown.Short(), "unknown", "the bank did not answer", "42.00 EUR", " ago"} {
		if !script[bool](b, `[...document.querySelectorAll("tbody tr *")].some(e => {
			const at = e.getBoundingClientRect();
			return e.textContent.includes("`+text+`") && at.width > 0 && at.left >= 0 && at.right <= 375;
		})`) {
			t.Errorf("%q is not within the screen", text)
		}
	}
}

// An open page shows a new stuck operation without a hand: but never while something is
// typed or selected, not when it is switched off, and never by a form that is sent again.
func TestAnOpenPageRefreshesItself(t *testing.T) {
	t.Parallel()
	s, b := records(t)
	s.unknown("pay-0", "")
	// A refresh takes 30 s, which are 15 ticks: the page's clock runs 300 times as fast, and
	// a tick waits for the one before.
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`const plain = setInterval; let runs = false; window.ticks = 0;
			window.setInterval = (f, ms) => plain(async () => { if (!runs) { runs = true; await f(); runs = false; ticks++ } }, ms / 300)`).Do(ctx)
		return err
	}))
	for what, c := range map[string]struct {
		path, script string
		fresh        bool
	}{
		"read":         {"", ``, true},
		"a list":       {"records?state=stuck", ``, true},
		"typed":        {"records?state=stuck", `const e = document.querySelector("#text"); e.value = "acme"; e.dispatchEvent(new Event("input", {bubbles: true}))`, false},
		"focused":      {"records?state=stuck", `document.querySelector("#label").focus()`, false},
		"picked":       {"records?state=stuck", `document.querySelector("[name=record]").checked = true`, false},
		"marked":       {"", `getSelection().selectAllChildren(document.querySelector("h1"))`, false},
		"switched off": {"", `document.querySelector("#refresh").click()`, false},
	} {
		b.visit(s.console(c.path))
		script[int](b, c.script+`;0`)
		id, before, fresh := s.unknown("new while "+what, ""), script[int](b, `window.ticks || 0`), false
		labtest.Eventually(b, "a new record, or three refreshes without it", func() bool {
			fresh = strings.Contains(b.text("body"), id.Short())
			return fresh || !c.fresh && script[int](b, `window.ticks || 0`) >= before+3*15
		})
		if fresh != c.fresh {
			t.Errorf("%s: refreshed %t, want %t", what, fresh, c.fresh)
		}
		script[int](b, `sessionStorage.clear();0`)
	}
	b.visit(s.console(""))
	b.run(chromedp.Evaluate(`window.fetch = () => Promise.reject(new Error("no network")); 0`, nil), chromedp.WaitVisible(".read.stale"))
	b.says("it could not be refreshed since")
	if problems := b.reported(); len(problems) > 0 {
		t.Errorf("the pages reported %q", problems)
	}
}
