package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) { servers.Main{M: m}.Run() }

func TestDemoShowsEveryStep(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (reprise.Store, error){
		"memory": func(t *testing.T) (reprise.Store, error) { return openStore(t.Context(), "memory", "") },
		"redis": func(t *testing.T) (reprise.Store, error) {
			t.Helper()
			return openStore(t.Context(), "redis", servers.Redis.Shared(t).URL())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := runDemo(t.Context(), &out, store); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range []string{
				"1. The first", "2. Its retry", "3. Of five", "4. A key", "5. An order", "6. A failure", "7. A client", "made 4 orders",
				"Idempotent-Replayed: true", "409 Conflict (4 times)", `"code":"key-reused"`, `"code":"key-missing"`, "502 Bad Gateway",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in the transcript\n%s", want, &out)
				}
			}
		})
	}
}

// forgetful is a store that keeps no answer.
type forgetful struct{ reprise.Store }

func (s forgetful) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	return s.Release(ctx, r.ID, r.Owner)
}

func TestDemoFailsOnWhatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	err := runDemo(t.Context(), io.Discard, forgetful{memstore.New()})
	if !errors.Is(err, errUnexpected) || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("error %v, want step 2 to fail", err)
	}
}

// The curl lines that are printed do what is said of them.
func TestServedOrdersAreReplayedAndBelongToTheirTenant(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, w, "127.0.0.1:0", memstore.New()) }()
	usage := make([]byte, 4096)
	n, err := printed.Read(usage)
	if err != nil {
		t.Fatal(err)
	}
	base := regexp.MustCompile(`http://[0-9.:]+[0-9]`).FindString(string(usage[:n]))

	send := func(method, path, token, key string) (status int, marker string) {
		req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(oneBook))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode, res.Header.Get("Idempotent-Replayed")
	}
	for _, c := range []struct {
		method, path, token, key string
		status                   int
		marker                   string
	}{
		{"POST", "/orders", "acme-token", "order-1", 201, ""},
		{"POST", "/orders", "acme-token", "order-1", 201, "true"},
		{"POST", "/orders", "globex-token", "order-1", 201, ""},
		{"POST", "/orders", "acme-token", "", 400, ""},
		{"POST", "/orders", "stolen-token", "order-1", 401, ""},
		{"GET", "/orders/1", "acme-token", "", 200, ""},
		{"GET", "/orders/2", "acme-token", "", 404, ""},
		{"GET", "/orders/2", "globex-token", "", 200, ""},
	} {
		if status, marker := send(c.method, c.path, c.token, c.key); status != c.status || marker != c.marker {
			t.Errorf("%+v: got %d %q", c, status, marker)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
