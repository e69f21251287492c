package hour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/otel/promtest"
)

// hour is a play, and its record.
type hour struct {
	*testing.T

	redis, ledger, audit string
	shopProgram, reprise string
	url                  string // of the shop that runs
	text                 strings.Builder
}

func (h *hour) chapter(title string) {
	if h.text.Len() > 0 {
		h.text.WriteByte('\n')
	}
	fmt.Fprintf(&h.text, "%s\n\n", title)
}

// says records lines. Text that differs from run to run is replaced.
func (h *hour) says(lines ...string) {
	for _, line := range lines {
		for _, v := range varying {
			line = v.ReplaceAllString(line, "${1}…")
		}
		line = padding.ReplaceAllString(line, "  ")
		fmt.Fprintf(&h.text, "    %s\n", strings.TrimRight(line, " "))
	}
}

// varying are ages, instants and fences.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`(\s)\d[\d.hms ]*(ms|µs|s|m)\b( ago)?`),
	regexp.MustCompile(`(\s)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* UTC`),
	regexp.MustCompile(`()\b\d{16}\b`),
}

// padding is as wide as the longest text that varies.
var padding = regexp.MustCompile(` {2,}`)

// firing returns the alerts that fire, but for the count of stuck records: a process
// counts them every five minutes of the clock on the wall, which this hour does not last.
func (h *hour) firing(p *promtest.Prometheus) []string {
	h.Helper()
	return slices.DeleteFunc(p.Firing(promtest.Rules(h.T, "../../otel/alerts.yaml")), func(name string) bool { return name == "RepriseStuck" })
}

func (h *hour) alerts(what string, firing []string) {
	if len(firing) == 0 {
		firing = []string{"none"}
	}
	h.says(what + ": " + strings.Join(firing, ", "))
}

// shop starts the shop.
func (h *hour) shop(bank *process) *process {
	h.Helper()
	p := h.start("-redis", h.redis, "-bank", bank.url, "-audit", h.audit)
	h.url = p.url
	return p
}

// pay sends a payment as the customer does, and returns the answer in short.
func (h *hour) pay(key, body string) string {
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/payments", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.SetBasicAuth("acme", "secret")
	got, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return err.Error()
	}
	answer := strconv.Itoa(got.StatusCode)
	var said struct{ Status, Code any } // a booking has a status, a problem a number there and a code
	if json.Unmarshal(text, &said) == nil {
		if code, ok := said.Code.(string); ok {
			answer += " " + code
		} else if status, ok := said.Status.(string); ok {
			answer += " " + status
		}
	}
	if got.Header.Get("Idempotent-Replayed") == "true" {
		answer += ", replayed"
	}
	return answer
}

// pays demands an answer.
func (h *hour) pays(key, body, want string) {
	h.Helper()
	got := h.pay(key, body)
	if got != want {
		h.Errorf("%s gets %s, want %s", key, got, want)
	}
	h.says(key + " gets " + got)
}

// program runs the operator's program, records it, and returns its output. The input
// is the text that the operator pastes.
func (h *hour) program(exit int, input string, args ...string) string {
	h.Helper()
	shown := strings.Join(args, " ")
	if input != "" {
		shown += "   (pasted: " + input + ")"
	}
	h.says("$ reprise " + strings.ReplaceAll(shown, h.audit, "audit.log"))
	out := h.run(exit, input, args...)
	for line := range strings.Lines(out) {
		h.says(strings.TrimRight(line, "\n"))
	}
	return out
}

func (h *hour) run(exit int, input string, args ...string) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.reprise, args...)
	cmd.Env = append(os.Environ(), "REPRISE_REDIS_URL="+h.redis, "REPRISE_PREFIX=shop:", "NO_COLOR=1")
	cmd.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		h.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		h.Fatalf("reprise %q exits with %d, want %d:\n%s%s", args, got, exit, out.String(), problems.String())
	}
	return out.String()
}

// find returns the ID of a key, as the program derives it from the customer's quote.
func (h *hour) find(key string) string {
	h.Helper()
	return strings.TrimSpace(h.run(0, key, "find", "--scope", "acme", "--id-only"))
}

// downstream returns the key that the bank was given for a payment.
func (h *hour) downstream(id string) string {
	h.Helper()
	found := callKey.FindStringSubmatch(h.program(0, "", "show", id, "--downstream", "charge"))
	if found == nil {
		h.Fatal("the program does not show the key of the call")
	}
	return found[1]
}

var callKey = regexp.MustCompile(`(?m)^key of call (\S+) charge`)

// fence returns the fence of a record.
func (h *hour) fence(id string) string {
	h.Helper()
	var shown struct{ Fence string }
	if err := json.Unmarshal([]byte(h.run(0, "", "show", id, "--json")), &shown); err != nil {
		h.Fatal(err)
	}
	return shown.Fence
}

// checkLedger demands that each order is booked, once.
func (h *hour) checkLedger(orders ...string) {
	h.Helper()
	ledger, err := os.ReadFile(h.ledger)
	if err != nil {
		h.Fatal(err)
	}
	for _, order := range orders {
		n := strings.Count(string(ledger), order+"\n")
		if n != 1 {
			h.Errorf("%s is booked %d times", order, n)
		}
		h.says(fmt.Sprintf("%s is booked %d×", order, n))
	}
	if n := strings.Count(string(ledger), "\n"); n != len(orders) {
		h.Errorf("the ledger has %d payments", n)
	}
}

// checkTrail demands that the audit log says of each change who made it, and why.
func (h *hour) checkTrail(want ...string) {
	h.Helper()
	file, err := os.ReadFile(h.audit)
	if err != nil {
		h.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(file)) {
		var entry struct{ Msg, ID, Action, Reason, Operator string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			h.Fatalf("%v: %s", err, line)
		}
		who := entry.Operator
		if strings.Contains(who, "@") {
			who = "the account that runs the program"
		}
		said := fmt.Sprintf("%s  %s  %s  by %s: %s", entry.ID[:12], entry.Action, entry.Msg, who, entry.Reason)
		all = append(all, said)
	}
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(a[:12], b[:12]) })
	h.says(all...)
	for _, text := range want {
		if !strings.Contains(strings.Join(all, "\n"), text) {
			h.Errorf("the audit trail does not say %q", text)
		}
	}
	for _, key := range []string{quiet, first, second, third} {
		if strings.Contains(string(file), strings.Trim(key, `"`)) {
			h.Errorf("the audit trail has the key %s", key)
		}
	}
}
