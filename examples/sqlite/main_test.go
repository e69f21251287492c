package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/examples/internal/program"
)

func TestMain(m *testing.M) { os.Exit(program.Main{M: m}.Run()) }

// TestTransferOutlivesItsProcess: the retry goes to the process that came after a
// SIGKILL.
func TestTransferOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	path, file := program.Build(t), filepath.Join(t.TempDir(), "bank.db")
	for life, replayed := range []string{"", "true"} {
		process := program.Start(t, path, program.WithoutServers(), "-file", file, "-addr", "127.0.0.1:0")
		base := process.Await(`Serving transfers on (http://[0-9.:]+)\n`)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/transfers", strings.NewReader(`{"from":1,"to":2,"amount":100}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", "t-1")
		got, err := new(http.Client).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || got.StatusCode != http.StatusCreated || got.Header.Get("Idempotent-Replayed") != replayed || string(body) != "moved 100 from 1 to 2\n" {
			t.Errorf("life %d: %s %q, replayed %q, %v", life, got.Status, body, got.Header.Get("Idempotent-Replayed"), err)
		}
		if read := visit(t, base+"/accounts"); read != "1: 900\n2: 100\n" {
			t.Errorf("life %d: the accounts are %q", life, read)
		}
		process.Kill()
	}
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
