package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// TestTransferOutlivesItsProcess: the retry goes to the process that came after a
// SIGKILL.
func TestTransferOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	for life, replayed := range []string{"", "true"} {
		process := program.Start(t, "-file", file, "-addr", "127.0.0.1:0")
		base := process.Await(t, `Serving transfers on (http://[0-9.:]+)\n`)
		for key, want := range map[string]struct {
			order, body string
			status      int
		}{
			"t-1": {`{"from":1,"to":2,"amount":100}`, "moved 100 from 1 to 2\n", http.StatusCreated},
			"t-2": {`{"from":1,"to":9,"amount":100}`, "no account to give this to\n", http.StatusUnprocessableEntity},
			"t-3": {`{"from":2,"to":1,"amount":900}`, "no account, or not enough money, to take this from\n", http.StatusUnprocessableEntity},
		} {
			status, body, again := transferred(t, base, key, want.order)
			if status != want.status || again != replayed || body != want.body {
				t.Errorf("life %d, %s: %d %q, replayed %q", life, want.order, status, body, again)
			}
		}
		if read := visit(t, base+"/accounts"); read != "1: 900\n2: 100\n" {
			t.Errorf("life %d: the accounts are %q", life, read)
		}
		process.Kill()
	}
}

// transferred sends an order, and returns the response and its mark of a replay.
func transferred(t *testing.T, base, key, order string) (status int, body, replayed string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/transfers", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", key)
	got, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text), got.Header.Get("Idempotent-Replayed")
}

func visit(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
