package hour

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/lab/console/chromium"
)

// resolveInConsole finds each payment by its quoted key, and then records the
// bank's answer for all of them together, as anna.
func (h *hour) resolveInConsole(shop *process, keys ...string) {
	h.Helper()
	tab := chromium.Start(h.T)
	first := true
	do := func(actions ...chromedp.Action) {
		h.Helper()
		ctx, cancel := context.WithTimeout(tab, 20*time.Second)
		defer cancel()
		if first {
			ctx, first = tab, false // the first run starts the browser, which lives as long as its context
		}
		if err := chromedp.Run(ctx, actions...); err != nil {
			var page string
			_ = chromedp.Run(tab, chromedp.Text("main", &page, chromedp.ByQuery))
			h.Fatalf("%v: the page says %s", err, page)
		}
	}
	text := func(selector string) (got string) {
		h.Helper()
		do(chromedp.Text(selector, &got, chromedp.ByQuery))
		return strings.Join(strings.Fields(got), " ")
	}
	console := shop.url + "/idempotency/"
	do(network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"X-Forwarded-User": "anna"}))
	for _, key := range keys {
		do(
			chromedp.Navigate(console+"find"), chromedp.SendKeys("#scope", "acme"), chromedp.SendKeys("#key", key),
			chromedp.Submit("#key"), chromedp.WaitVisible("dl.facts"),
		)
		h.says("find " + key + ": " + "the client gets next " + text("dl.facts strong"))
	}
	do(chromedp.Navigate(console+"records?state=stuck"), chromedp.WaitVisible("button[form=several]"))
	for _, key := range keys {
		do(chromedp.Click(`input[name=record][value^="`+h.find(key)+`"]`, chromedp.ByQuery))
	}
	do(
		chromedp.Click("button[form=several]"), chromedp.WaitVisible("ul.several"),
		chromedp.SetValue("#body", `{"status":"booked"}`), chromedp.SetValue("#reason-answer", "booked, says the bank"), chromedp.SetValue("#confirm-answer", "answer 2"),
		chromedp.Submit("#confirm-answer"), chromedp.WaitVisible("ul.several .completed"),
	)
	h.says(fmt.Sprintf("resolve the selected: %d× The answer was recorded", strings.Count(text("ul.several"), "The answer was recorded")))
	do(chromedp.Navigate(console+"trail"), chromedp.WaitReady("main", chromedp.ByQuery))
	trail := text("main")
	for _, want := range []string{"anna", "booked, says the bank", h.find(keys[0])[:12], h.find(keys[1])[:12]} {
		if !strings.Contains(trail, want) {
			h.Errorf("the trail does not say %q: %s", want, trail)
		}
	}
}
