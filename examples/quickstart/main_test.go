package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/program"
	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) { servers.Main{M: program.Main{M: m}}.Run() }

func TestDemoShowsEveryStep(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, args := range map[string]func(*testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"redis":  func(t *testing.T) []string { t.Helper(); return []string{"-redis-url", servers.Redis.Shared(t).URL()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, status := program.Run(t, path, program.WithoutServers(), append(args(t), "-demo")...)
			if status != 0 {
				t.Errorf("exit status %d", status)
			}
			for _, want := range []string{
				"1. The first", "2. Its retry", "3. Of five", "4. A key", "5. An order", "6. A failure", "7. A client", "8. A process", "made 5 orders.\n",
				"Idempotent-Replayed: true", "409 Conflict (4 times)", `"code":"key-reused"`, `"code":"key-missing"`, "502 Bad Gateway",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in the transcript\n%s", want, said)
				}
			}
		})
	}
}

func TestATakenPortLeadsToTheNextFreeOne(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	process := program.Start(t, path, program.WithoutServers(), "-addr", addr)
	port := process.Await(`Port [0-9]+ is taken: ([0-9]+), the next free one, is used instead\.`)
	if url := process.Await(`Serving orders on (http://[0-9.:]+)\.`); url != "http://127.0.0.1:"+port {
		t.Errorf("serves on %s, not on port %s", url, port)
	}
	if said, status := program.Run(t, path, program.WithoutServers(), "-demo", "-addr", addr); status != 0 || !strings.Contains(said, "is taken: ") {
		t.Errorf("-demo: exit status %d: %s", status, said)
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"unknown":        {[]string{"-nonsense"}, 2, "not defined: -nonsense\nUsage of "},
		"argument":       {[]string{"demo"}, 1, `quickstart: unexpected argument "demo"`},
		"address":        {[]string{"-addr", "8080"}, 1, `quickstart: the address "8080" is invalid: want host:port`},
		"demo's address": {[]string{"-demo", "-addr", "127.0.0.1:x"}, 1, `quickstart: the address "127.0.0.1:x" is invalid`},
		"no Redis":       {[]string{"-redis-url", "redis://127.0.0.1:1"}, 1, "quickstart: -redis-url: reprise: store unreachable: "},
		"no Redis URL":   {[]string{"-demo", "-redis-url", "http://127.0.0.1:1"}, 1, "quickstart: -redis-url: redis: invalid URL scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if said, status := program.Run(t, path, os.Environ(), c.args...); status != c.status || !strings.Contains(said, c.want) {
				t.Errorf("exit status %d, want %d and %q in: %s", status, c.status, c.want, said)
			}
		})
	}
}

// forgetful is a store that keeps no response.
type forgetful struct{ store.Store }

func (s forgetful) Complete(ctx context.Context, r store.CompleteRequest) error {
	return s.Release(ctx, r.ID, r.Owner)
}

func TestDemoFailsOnUnexpectedResponses(t *testing.T) {
	t.Parallel()
	err := runDemo(t.Context(), io.Discard, "127.0.0.1:0", forgetful{memstore.New()})
	if !errors.Is(err, errUnexpected) || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("error %v, want step 2 to fail", err)
	}
}

// The printed curl lines behave as described.
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
