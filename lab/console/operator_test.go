package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/otel/promtest"
	"github.com/reprise-go/reprise/servers"
)

// hour is a play, and its record.
type hour struct {
	*testing.T

	redis, audit, access, reprise string // a server's URL, two files, and the operator's program
	shop                          *shop  // that runs
	text                          strings.Builder
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

// tempDirs are folders of the operator's files.
var tempDirs = regexp.MustCompile(`/\S*/`)

// padding is as wide as the longest text that varies.
var padding = regexp.MustCompile(` {2,}`)

// alerts records the alerts that fire, but for the count of stuck records: a process
// counts them every five minutes of the clock on the wall, which this hour does not last.
func (h *hour) alerts(what string, p *promtest.Prometheus) {
	h.Helper()
	firing := slices.DeleteFunc(p.Firing(promtest.Rules(h.T, "../../otel/alerts.yaml")), func(name string) bool { return name == "RepriseStuck" })
	if len(firing) == 0 {
		firing = []string{"none"}
	}
	h.says(what + ": " + strings.Join(firing, ", "))
}

// opens opens the shop.
func (h *hour) opens(bank *bank) {
	h.Helper()
	audit, err := os.OpenFile(h.audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	labtest.Must(h, err)
	h.Cleanup(func() { _ = audit.Close() })
	h.shop = openShop(h.T, h.redis, "shop:", bank.URL, audit)
}

// pays sends a payment as the customer does, and records the answer in short.
func (h *hour) pays(key, body string) {
	h.Helper()
	h.says(h.pay(key, body))
}

func (h *hour) pay(key, body string) string { return h.send(h.shop.URL+"/payments", key, body) }

func (h *hour) send(url, key, body string) string {
	r, err := http.NewRequestWithContext(h.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("X-Tenant", "acme")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.SetBasicAuth("acme", "secret")
	got, err := (&http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return err.Error()
	}
	var said struct{ Status, Code any } // a booking has a status, a problem a number there and a code
	_ = json.Unmarshal(text, &said)
	words := []string{key, "gets", strconv.Itoa(got.StatusCode)}
	for _, word := range []any{said.Code, said.Status} {
		if word, ok := word.(string); ok {
			words = append(words, word)
		}
	}
	answer := strings.Join(words, " ")
	if got.Header.Get("Idempotent-Replayed") == "true" {
		answer += ", replayed"
	}
	return answer
}

// proxies starts the program as a proxy before a bank, and returns the address to pay at
// and its file.
func (h *hour) proxies(b *bank) (url, config string) {
	h.Helper()
	addr, file := servers.FreeAddr(h), filepath.Join(h.TempDir(), "proxy.toml")
	h.access = filepath.Join(h.TempDir(), "access.log")
	labtest.Must(h, os.WriteFile(file, fmt.Appendf(nil, "upstream = '%s'\nscope = 'header:X-Tenant'\n", b.URL), 0o600))
	cmd := exec.CommandContext(h.Context(), h.reprise, "proxy", "--listen", addr, "--config", file, "--access-log", h.access)
	cmd.Env = h.env()
	labtest.Must(h, cmd.Start())
	h.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	labtest.Eventually(h, "the proxy to listen", func() bool {
		conn, err := new(net.Dialer).DialContext(h.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://" + addr + "/payments/refund", file
}

// logged returns the status and the problem that the access log has for a record last.
func (h *hour) logged(id string) string {
	h.Helper()
	text, err := os.ReadFile(h.access)
	labtest.Must(h, err)
	var last struct {
		Status   int
		ID, Code string
	}
	for line := range strings.Lines(string(text)) {
		labtest.Must(h, json.Unmarshal([]byte(line), &last))
	}
	if last.ID == "" || !strings.HasPrefix(id, last.ID) {
		h.Errorf("the access log has %+v, want the record %s", last, id)
	}
	return fmt.Sprint(last.Status, " ", last.Code)
}

// env is the environment of the operator's program.
func (h *hour) env() []string {
	return append(os.Environ(), "REPRISE_STORE="+h.redis, "REPRISE_PREFIX=shop:", "NO_COLOR=1")
}

// program runs the operator's program, records it, and returns its output. The input
// is the text that the operator pastes.
func (h *hour) program(exit int, input string, args ...string) string {
	h.Helper()
	shown := strings.Join(args, " ")
	if input != "" {
		shown += "   (pasted: " + input + ")"
	}
	h.says("$ reprise " + tempDirs.ReplaceAllString(shown, ""))
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
	cmd.Env = h.env()
	cmd.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	_ = cmd.Run() // the exit code says more
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
	var shown struct{ Fence json.Number }
	labtest.Must(h, json.Unmarshal([]byte(h.run(0, "", "show", id, "--json")), &shown))
	return shown.Fence.String()
}

// trail records the audit log: each change, who made it, and why.
func (h *hour) trail() {
	h.Helper()
	file, err := os.ReadFile(h.audit)
	labtest.Must(h, err)
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
		all = append(all, fmt.Sprintf("%s  %s  %s  by %s: %s", entry.ID[:12], entry.Action, entry.Msg, who, entry.Reason))
	}
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(a[:12], b[:12]) })
	h.says(all...)
	for _, key := range []string{quiet, first, second, third, fourth} {
		if strings.Contains(string(file), strings.Trim(key, `"`)) {
			h.Errorf("the audit trail has the key %s", key)
		}
	}
}

// compare compares the record of the hour with the one that is kept.
func (h *hour) compare(golden string) {
	h.Helper()
	got := h.text.String()
	if *update {
		labtest.Must(h, os.WriteFile(golden, []byte(got), 0o600))
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		h.Errorf("the hour is not as %s records it (go test -update writes it), %v:\n%s", golden, err, got)
	}
}
