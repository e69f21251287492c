package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/core/store"
)

// Every page, light and dark, wide and on a phone, passes axe-core and does not scroll
// sideways.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	axe := axeSource(t)
	st := stores["redis"](t)
	lapsed := stuck(t, st, "order-17")
	s := serve(t, st)
	payment := s.unknown("pay-1", "POST /payments of acme, 42.00 EUR")
	s.unknown("pay-2", "POST /payments of a customer with the long name that some customers have, 17,500.00 EUR")
	resolved := s.unknown("pay-3", "POST /payments of initech, 3.50 EUR")
	s.free()
	s.wants("done", 200)
	s.status.Store(http.StatusServiceUnavailable)
	s.wants("failed", 503)
	of := func(key string) string { return "records/main/" + store.DeriveID("shop", "", key).String() }
	open := func(path string, then ...chromedp.Action) func(*browser) {
		return func(b *browser) {
			b.visit(s.console(path))
			b.run(then...)
		}
	}
	several := open("records?state=stuck&all=1", chromedp.Click("button[form=several]"), chromedp.WaitVisible("ul.several"))
	b := openBrowser(t)
	b.visit(s.console("records/main/" + resolved.String()))
	b.run(
		chromedp.SetValue("#body", `{"payment":3}`), chromedp.SetValue("#reason-answer", "bank reference 8812, INC-204"),
		chromedp.SetValue("#confirm-answer", resolved.Short()), chromedp.Click("button[type=submit]"), chromedp.WaitVisible(".notice"),
	)
	for name, show := range map[string]func(*browser){
		"home":      open(""),
		"list":      open("records"),
		"stuck":     open("records?state=stuck"),
		"lapsed":    open("records/main/" + lapsed.String()),
		"unknown":   open("records/main/" + payment.String()),
		"completed": open(of("done")),
		"revealed":  open(of("done"), chromedp.Click("button[value=reveal]"), chromedp.WaitVisible("pre.body")),
		"kept":      open(of("failed")),
		"several":   several,
		"refused": func(b *browser) {
			several(b)
			b.run(chromedp.SetValue("#reason-forget", "x"), chromedp.SetValue("#confirm-forget", "x"), chromedp.Click("button.danger"), chromedp.WaitVisible(".notice.failed"))
		},
		"find":     open("find"),
		"policies": open("policies"),
		"trail":    open("trail"),
		"failure":  open("records/main/" + strings.Repeat("0", 64)),
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 375} {
				b.looks(width, scheme)
				show(b)
				b.axe(axe)
				var wide bool
				b.run(chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide))
				if wide {
					t.Errorf("%s scrolls sideways at %d", name, width)
				}
				b.shot(name + "-" + scheme + "-" + uintText(uint64(width)))
			}
		}
	}
}

// On a phone a listing is made of cards: each shows its record, state, request and age
// within the width of the screen. No width in between makes it scroll sideways.
func TestPhoneShowsTheColumnsThatMatter(t *testing.T) {
	t.Parallel()
	st := stores["redis"](t)
	s := serve(t, st)
	id := s.unknown("pay-1", "POST /payments of acme")
	b := openBrowser(t)
	for _, width := range []int64{1024, 800, 769, 650, 375} {
		b.looks(width, "light")
		b.visit(s.console("records"))
		var wide bool
		b.run(chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide))
		if wide {
			t.Errorf("the list scrolls sideways at %d", width)
		}
	}
	for _, text := range []string{id.Short(), "unknown", "the bank did not answer", "POST /payments of acme", " ago"} {
		var seen bool
		b.run(chromedp.Evaluate(`[...document.querySelectorAll("tbody tr *")].some(e => {
			const at = e.getBoundingClientRect();
			return e.textContent.includes("`+text+`") && at.width > 0 && at.left >= 0 && at.right <= 375;
		})`, &seen))
		if !seen {
			t.Errorf("%q is not within the screen", text)
		}
	}
}

// An open page shows a new stuck operation without a hand: but never while something is
// typed or selected, not when it is switched off, and never by a form that is sent again.
func TestAnOpenPageRefreshesItself(t *testing.T) {
	t.Parallel()
	st := stores["redis"](t)
	s := serve(t, st)
	s.unknown("pay-0", "")
	b := openBrowser(t)
	// A refresh takes 30 s: the page's clock runs 300 times as fast,
	// and a tick waits for the one before.
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`const plain = setInterval; let runs = false; window.ticks = 0;
			window.setInterval = (f, ms) => plain(async () => { if (!runs) { runs = true; await f(); runs = false; ticks++ } }, ms / 300)`).Do(ctx)
		return err
	}))
	fresh := func(id store.ID) bool {
		b.Helper()
		before := b.ticks()
		found := false
		await(t, "three refreshes", func() (string, bool) {
			found = strings.Contains(b.text(), id.Short())
			return "", found || b.ticks() >= before+3
		})
		return found
	}
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
		b.run(chromedp.Evaluate(c.script+`;0`, nil))
		if got := fresh(s.unknown("new while "+what, "")); got != c.fresh {
			t.Errorf("%s: refreshed %t, want %t", what, got, c.fresh)
		}
		b.run(chromedp.Evaluate(`sessionStorage.clear()`, nil))
	}
	b.visit(s.console(""))
	b.run(chromedp.Evaluate(`window.fetch = () => Promise.reject(new Error("no network")); 0`, nil), chromedp.WaitVisible(".read.stale"))
	b.says("it could not be refreshed since")

	id := store.DeriveID("shop", "", "done")
	s.free()
	s.wants("done", 200)
	b.visit(s.console("records/main/" + id.String()))
	// A refresh may replace a button between its discovery and a click of the driver.
	b.run(chromedp.Evaluate(`document.querySelector("button[value=reveal]").click()`, nil), chromedp.WaitVisible("pre.body", chromedp.ByQuery))
	var scripts int
	b.run(chromedp.Evaluate(`document.scripts.length`, &scripts))
	if scripts != 0 {
		t.Errorf("a page that was sent a form has %d scripts", scripts)
	}
	if problems := b.reported(); len(problems) > 0 {
		t.Errorf("the pages reported %q", problems)
	}
}

// ticks returns how often the page has thought of a refresh.
func (b *browser) ticks() (n int) {
	b.Helper()
	b.run(chromedp.Evaluate(`window.ticks || 0`, &n))
	return n
}

// After an outage an operator resolves several records by one form, and each client gets
// its answer.
func TestAnOperatorResolvesSeveralRecords(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, open(t))
			keys := []string{"pay-1", "pay-2", "pay-3"}
			for _, key := range keys {
				s.unknown(key, "")
			}
			b := openBrowser(t)
			b.visit(s.console("records?state=stuck"))
			b.run(chromedp.Click(`//a[text()="Select all of this page"]`), chromedp.WaitVisible(`//a[text()="Select none"]`))
			b.run(chromedp.Click("button[form=several]"), chromedp.WaitVisible("ul.several"))
			own := "body-" + store.DeriveID("shop", "", "pay-2").String()
			b.run(
				chromedp.SetValue("#body", `{"state":"booked"}`), chromedp.Click("summary"), chromedp.SetValue("#"+own, `{"payment":2}`),
				chromedp.SetValue("#reason-answer", "INC-204: the bank booked all"), chromedp.SetValue("#confirm-answer", "answer 3"),
				chromedp.Click(`//button[text()="Record these answers"]`), chromedp.WaitVisible(".notice"),
			)
			b.says("3 of 3 records were resolved")
			for _, key := range keys {
				want := `{"state":"booked"}`
				if key == "pay-2" {
					want = `{"payment":2}`
				}
				if status, _, body, err := s.order(t.Context(), key); err != nil || status != 201 || body != want {
					t.Errorf("%s gets %d %s, %v", key, status, body, err)
				}
			}
			if n := strings.Count(s.log.String(), `reason="INC-204: the bank booked all"`); n != 6 || s.runs.Load() != 0 {
				t.Errorf("%d lines of the log, %d runs: %s", n, s.runs.Load(), s.log)
			}
			b.visit(s.console("trail"))
			b.says("ada", "INC-204: the bank booked all", "recorded an answer, as it was unknown")
		})
	}
}
