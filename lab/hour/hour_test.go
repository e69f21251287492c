// Package hour plays a recorded hour of an operator with the programs of this tree:
// the shop and its bank, the operator's program, the console in Chromium, and the alerts
// in Prometheus' own engine. It is a separate module, so that a refused dependency
// takes down only this test.
package hour

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/otel/promtest"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var update = flag.Bool("update", false, "write the recorded hour")

// The customers' keys, as they send them and as they tell them to the support.
const (
	quiet  = `"pay-100"`
	first  = `"pay-101"` // is booked, and its answer lost
	second = `"pay-102"` // likewise
	third  = `"pay-103"` // is not booked
)

// A bank goes away and leaves three payments unknown. Nothing tells the operator before
// the shop restarts, and still an alert fires. The operator finds the payments by the
// keys that customers quote, asks the bank, resolves two in the console and one with the
// program. The customers get their answers, each payment is booked once, and the audit
// trail says who decided, and why.
func TestAnHourOfAnOperator(t *testing.T) {
	dir := t.TempDir()
	h := &hour{T: t, redis: servers.Redis.Start(t).URL(), ledger: filepath.Join(dir, "ledger"), audit: filepath.Join(dir, "audit.log")}
	h.build(dir)
	prometheus := promtest.Start(t)

	h.chapter("18:00  A quiet evening")
	bank := h.start("-ledger", h.ledger, "-fails")
	shop := h.shop(bank)
	h.pays(quiet, `{"reference":"order 100"}`, "201 booked")
	prometheus.Pass(5*time.Minute, shop.metrics())
	h.alerts("Alerts", h.firing(prometheus))

	h.chapter("18:05  The bank goes away with three payments in its hands")
	answers := make(chan string, 3)
	for _, lost := range []struct{ key, order, bank string }{{first, "order 101", "books"}, {second, "order 102", "books"}, {third, "order 103", "hangs"}} {
		go func() {
			answers <- lost.key + " gets " + h.pay(lost.key, `{"reference":"`+lost.order+`","bank":"`+lost.bank+`"}`)
		}()
		bank.await("holding " + lost.order)
	}
	bank.kill()
	lost := []string{<-answers, <-answers, <-answers}
	slices.Sort(lost)
	h.says(lost...)
	for _, line := range lost {
		if !strings.Contains(line, "504") {
			t.Fatalf("want 504 for what may have been paid: %s", line)
		}
	}

	h.chapter("18:06  The shop restarts before Prometheus has read what happened")
	shop.kill()
	bank = h.start("-ledger", h.ledger)
	shop = h.shop(bank)
	prometheus.Pass(2*time.Minute, shop.metrics())
	h.pays(first, `{"reference":"order 101","bank":"books"}`, "409 outcome-unknown")
	prometheus.Pass(time.Minute, shop.metrics())
	firing := h.firing(prometheus)
	h.alerts("The operator's phone rings", firing)
	if !slices.Contains(firing, "RepriseOutcomeUnknown") {
		t.Errorf("the alert does not fire after the restart: %q", firing)
	}

	h.chapter("18:10  The runbook: what needs a person?")
	h.program(1, "", "stuck")
	for _, key := range []string{first, second, third} {
		id := strings.TrimSpace(h.program(0, key, "find", "--scope", "acme", "--id-only"))
		h.says("the bank: " + bank.asked(h.downstream(id)))
	}

	h.chapter("18:20  Two were paid: the console")
	h.resolveInConsole(shop, first, second)

	h.chapter("18:30  One was not: the program")
	id := h.find(third)
	h.program(0, "", "resolve", id, "--forget", "--reason", "the bank has no such payment", "--yes", "--fence", h.fence(id), "--audit-log", h.audit)

	h.chapter("18:40  The customers try again")
	h.pays(first, `{"reference":"order 101","bank":"books"}`, "201 booked, replayed")
	h.pays(second, `{"reference":"order 102","bank":"books"}`, "201 booked, replayed")
	h.pays(third, `{"reference":"order 103","bank":"hangs"}`, "201 booked")
	h.program(0, "", "stuck")
	prometheus.Pass(20*time.Minute, shop.metrics())
	firing = h.firing(prometheus)
	h.alerts("Alerts", firing)
	if len(firing) > 0 {
		t.Errorf("alerts after all is resolved: %q", firing)
	}

	h.chapter("19:00  What remains: the ledger and the audit trail")
	h.checkLedger("order 100", "order 101", "order 102", "order 103")
	h.checkTrail("by anna: booked, says the bank", "by the account that runs the program: the bank has no such payment")
	h.compare(filepath.Join("testdata", "hour.txt"))
}

func (h *hour) compare(golden string) {
	h.Helper()
	got := h.text.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			h.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		h.Fatal(err)
	}
	if got != string(want) {
		h.Errorf("the hour is not as %s records it (go test -update writes it):\n%s", golden, got)
	}
}
