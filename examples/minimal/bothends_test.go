package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/servers"
)

// bothEnds is the block of docs/guides/client.md.
func bothEnds(ctx context.Context, out io.Writer) error {
	// The service, whose first connection breaks.
	guard := must(protocol.New(memstore.New(), protocol.Config{Required: true}))
	once := reprisehttp.Middleware(guard, reprisehttp.Unscoped)
	server := httptest.NewServer(cutFirst(once(http.HandlerFunc(createOrder))))
	defer server.Close()

	// Its client, which sends one key with all attempts of a POST.
	transport := must(repriseclient.NewTransport(server.Client().Transport, repriseclient.Config{}))
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("a book"))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err // errors.As: a *repriseclient.UnknownOutcomeError, if the order may have been taken
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	fmt.Fprintf(out, "%s after %d attempts, replayed: %v\n", strings.TrimSpace(string(answer)), repriseclient.Attempts(resp), repriseclient.Replayed(resp))
	return err // order 1 after 2 attempts, replayed: true
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// cutFirst runs the first request, and breaks the connection before its response is sent.
func cutFirst(next http.Handler) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// The guides show code of this folder as it is, so that it compiles and behaves as they
// say.
func TestGuidesShowThisCode(t *testing.T) {
	t.Parallel()
	for guide, shown := range map[string]struct{ file, from, to, indent string }{
		"client.md":       {"bothends_test.go", "func bothEnds(ctx context.Context, out io.Writer) error {\n", "\n}\n", "\t"},
		"five-minutes.md": {"main.go", "package main\n", "\n\x00", ""},
	} {
		code, err := os.ReadFile(shown.file)
		servers.Must(t, err)
		page, err := os.ReadFile("../../docs/guides/" + guide)
		servers.Must(t, err)
		_, text, _ := strings.Cut(string(code)+"\x00", shown.from)
		text, _, found := strings.Cut(text, shown.to)
		text = strings.ReplaceAll("\n"+text, "\n"+shown.indent, "\n")[1:]
		if !found || !strings.Contains(string(page), text+"\n```\n") {
			t.Errorf("docs/guides/%s does not show this of %s:\n%s", guide, shown.file, text)
		}
	}
}

func TestOrderIsTakenOnceAlthoughItsResponseIsLost(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := bothEnds(t.Context(), &out); err != nil || out.String() != "order 1 after 2 attempts, replayed: true\n" {
		t.Errorf("printed %q, %v", &out, err)
	}
}
