// Package shoptest tests the program of each framework as a process.
package shoptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Run builds the program of the folder that the test runs in, and demands that Prometheus
// can scrape one claim and one replay, and that the span of the replay is linked to that
// of the first run.
func Run(t *testing.T) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "telemetry")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil { //nolint:gosec // a program of this test
		t.Fatalf("%v: %s", err, out)
	}
	process := exec.CommandContext(t.Context(), program, "-addr", "127.0.0.1:0") //nolint:gosec // likewise
	var spans bytes.Buffer
	process.Stdout = &spans
	said, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	for range 2 {
		send(t, http.MethodPost, "http://"+addr+"/orders", http.StatusCreated)
	}
	metrics := send(t, http.MethodGet, "http://"+addr+"/metrics", http.StatusOK)
	for _, want := range []string{`reprise_outcome="claimed"} 1`, `reprise_outcome="replayed"} 1`, `reprise_end="recorded",reprise_label="orders"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	type context struct{ TraceID string }
	type span struct {
		SpanContext context
		Links       []struct{ SpanContext context }
	}
	var printed []span
	for decoder := json.NewDecoder(&spans); ; {
		var next span
		if decoder.Decode(&next) != nil {
			break
		}
		printed = append(printed, next)
	}
	if len(printed) != 2 || len(printed[1].Links) != 1 || printed[1].Links[0].SpanContext != printed[0].SpanContext {
		t.Errorf("the spans are %+v", printed)
	}
}

var client = &http.Client{Timeout: time.Minute}

func send(t *testing.T, method, address string, status int) (body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", `"7c1f"`)
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != status {
		t.Fatalf("%s: %d, %v", address, got.StatusCode, err)
	}
	return string(b)
}
