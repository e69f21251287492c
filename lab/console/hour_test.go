package console

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"github.com/reprise-go/reprise/lab/otel/promtest"
	"github.com/reprise-go/reprise/servers"
)

var update = flag.Bool("update", false, "write the recorded hour")

// The customers' keys, as they send them and as they tell them to the support.
const (
	quiet  = `"pay-100"`
	first  = `"pay-101"` // is booked, and its answer lost
	second = `"pay-102"` // likewise
	third  = `"pay-103"` // is not booked
	fourth = `"pay-104"` // goes through a proxy; is booked, and its answer lost
)

// A bank goes away and leaves three payments unknown. Nothing tells the operator before
// the shop restarts, and still an alert fires. The operator finds the payments by the
// keys that customers quote, asks the bank, resolves two in the console and one with the
// program, and then one of a service that has the proxy before it. The customers get
// their answers, each payment is booked once, and the audit trail says who decided, and
// why. All of that is in testdata/hour.txt.
func TestAnHourOfAnOperator(t *testing.T) {
	h := &hour{T: t, redis: servers.Redis.Start(t).URL(), audit: filepath.Join(t.TempDir(), "audit.log"), reprise: program(t)}
	prometheus := promtest.Start(t)

	h.chapter("18:00  A quiet evening")
	bank := openBank(t)
	h.opens(bank)
	h.pays(quiet, `{"reference":"order 100"}`)
	prometheus.Pass(5*time.Minute, h.shop.metrics())
	h.alerts("Alerts", prometheus)

	h.chapter("18:05  The bank goes away with three payments in its hands")
	answers := make(chan string, 3)
	for _, lost := range []struct{ key, order, bank string }{{first, "order 101", "books"}, {second, "order 102", "books"}, {third, "order 103", "hangs"}} {
		go func() { answers <- h.pay(lost.key, `{"reference":"`+lost.order+`","bank":"`+lost.bank+`"}`) }()
		<-bank.holding
	}
	bank.goesAway()
	lost := []string{<-answers, <-answers, <-answers}
	slices.Sort(lost)
	h.says(lost...)

	h.chapter("18:06  The shop restarts before Prometheus has read what happened")
	h.shop.stops()
	h.opens(bank)
	prometheus.Pass(2*time.Minute, h.shop.metrics())
	h.pays(first, `{"reference":"order 101","bank":"books"}`)
	prometheus.Pass(time.Minute, h.shop.metrics())
	h.alerts("The operator's phone rings", prometheus)

	h.chapter("18:10  The runbook: what needs a person?")
	h.program(1, "", "stuck")
	for _, key := range []string{first, second, third} {
		id := strings.TrimSpace(h.program(0, key, "find", "--scope", "acme", "--id-only"))
		h.says("the bank: " + bank.asked(h.downstream(id)))
	}

	h.chapter("18:20  Two were paid: the console")
	h.resolveInConsole(first, second)

	h.chapter("18:30  One was not: the program")
	id := h.find(third)
	h.program(0, "", "resolve", id, "--forget", "--reason", "the bank has no such payment", "--yes", "--fence", h.fence(id), "--audit-log", h.audit)

	h.chapter("18:40  The customers try again")
	h.pays(first, `{"reference":"order 101","bank":"books"}`)
	h.pays(second, `{"reference":"order 102","bank":"books"}`)
	h.pays(third, `{"reference":"order 103","bank":"hangs"}`)
	h.program(0, "", "stuck")
	prometheus.Pass(20*time.Minute, h.shop.metrics())
	h.alerts("Alerts", prometheus)

	h.chapter("18:45  A payment was lost behind the proxy, too")
	until := openBank(t)
	proxy, config := h.proxies(until)
	go func() { answers <- h.send(proxy, fourth, `{"reference":"order 104","bank":"books"}`) }()
	<-until.holding
	until.goesAway()
	h.says(<-answers)
	h.says(h.send(proxy, fourth, `{"reference":"order 104","bank":"books"}`))
	id = strings.TrimSpace(h.program(0, fourth, "find", "--config", config, "--field", "X-Tenant: acme", "--id-only"))
	h.says("the access log: "+h.logged(id), "the bank: "+until.asked("refund"))
	h.program(0, "", "resolve", id, "--answer", "201", "--body", `{"status":"booked"}`, "--reason", "booked, says the bank", "--yes", "--fence", h.fence(id), "--audit-log", h.audit)
	h.says(h.send(proxy, fourth, `{"reference":"order 104","bank":"books"}`))

	h.chapter("19:00  What remains: the ledger and the audit trail")
	h.says(bank.booked()...)
	h.trail()
	h.compare(filepath.Join("testdata", "hour.txt"))
}

// resolveInConsole finds each payment by its quoted key, and then records the bank's
// answer for all of them together, as anna, who has no mouse.
func (h *hour) resolveInConsole(keys ...string) {
	h.Helper()
	b := openBrowser(h.T)
	b.run(network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"X-Forwarded-User": "anna"}))
	for _, key := range keys {
		b.visit(h.shop.console("find"))
		b.fill("scope", "acme")
		b.fill("key", key)
		b.press("Find")
		h.says("find " + key + ": the client gets next " + b.text("dl.facts strong"))
	}
	b.visit(h.shop.console("records?state=stuck"))
	for _, key := range keys {
		b.tabTo(`el.name === "record" && el.value.startsWith("` + h.find(key) + `")`)
		b.keys(" ")
	}
	b.tabTo(`el.matches("button[form=several]")`)
	b.enter()
	b.fill("body", `{"status":"booked"}`)
	b.fill("reason-answer", "booked, says the bank")
	b.fill("confirm-answer", "answer 3")
	b.press("Record these answers")
	h.says("confirmed wrongly: " + b.text(".notice.failed"))
	b.fill("confirm-answer", "answer 2")
	b.press("Record these answers")
	h.says(fmt.Sprintf("resolve the selected: %d× The answer was recorded", strings.Count(b.text("ul.several"), "The answer was recorded")))

	b.visit(h.shop.console("records/main/" + h.find(keys[0])))
	b.press("Show its fields and body")
	h.says("revealed: " + b.text("pre.body"))
	b.visit(h.shop.console("trail"))
	b.says("anna", "booked, says the bank", h.find(keys[0])[:12], h.find(keys[1])[:12])
	if problems := slices.DeleteFunc(b.reported(), func(p string) bool { return strings.Contains(p, "a status of 4") }); len(problems) > 0 {
		h.Errorf("the pages reported %q", problems)
	}
}
