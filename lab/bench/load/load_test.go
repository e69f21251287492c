package load

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// server answers as a benchmark server does, and keeps count.
type server struct {
	mu   sync.Mutex
	keys map[string]int
	kind map[string]int
	bad  bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	s.keys[key]++
	s.kind[r.Header.Get(KindHeader)]++
	if s.keys[key] > 1 && key != "" && !s.bad {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(adaptertest.DefaultBody))
}

func serveTest(t *testing.T, s *server) (addr string) {
	t.Helper()
	s.keys, s.kind = map[string]int{}, map[string]int{}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h.Listener.Addr().String()
}

func begin() {}

// A load of new keys uses each once, a load of replays one for each connection, and a
// load without keys none.
func TestKindsOfLoad(t *testing.T) {
	t.Parallel()
	const connections, requests = 3, 60
	for kind, want := range map[Kind]int{New: requests, Replay: connections, NoKey: 1} {
		s := new(server)
		r, err := Run(t.Context(), Order{Addr: serveTest(t, s), Connections: connections, Kind: kind, Count: requests, Marked: true}, begin)
		if err != nil || r.Requests != requests {
			t.Fatalf("%s: %+v, %v", kind, r, err)
		}
		if len(s.keys) != want || kind == NoKey && s.keys[""] != requests {
			t.Errorf("%s: %d keys, want %d", kind, len(s.keys), want)
		}
		if kind == Replay && (s.kind["new"] != connections || s.kind["replay"] != requests) {
			t.Errorf("the server was told of %v", s.kind)
		}
		for key := range s.keys {
			if kind != NoKey && (len(key) != keyLength || strings.Count(key, "-") != 4) {
				t.Errorf("the key %q is not a UUID", key)
			}
		}
	}
}

// A response that is not the one of a benchmark server is an error that shows it, and so
// is a server that is not there.
func TestWrongResponsesEndALoad(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	for addr, want := range map[string]string{serveTest(t, &server{bad: true}): "201 created", gone.Listener.Addr().String(): "404", "127.0.0.1:1": "refused"} {
		r, err := Run(t.Context(), Order{Addr: addr, Connections: 2, Kind: Replay, Count: 10, Marked: true}, begin)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v, want %s", r, err, want)
		}
	}
}
