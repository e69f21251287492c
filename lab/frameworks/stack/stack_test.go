package stack

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
)

// The comparison finds a layer that breaks a response on one side of the middleware, and
// a difference that is listed and gone.
func TestStacksThatDifferAreFound(t *testing.T) {
	t.Parallel()
	n := 0
	broken := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			w.Header().Set("X-Count", strconv.Itoa(n)) // of each response, so that none equals another
			next.ServeHTTP(w, r)
		})
	}
	guard, runs := newGuard(t), new(counter)
	mux := http.NewServeMux()
	r := Route{Path: "/broken/outside/true/text", Layer: "broken", Kind: "text", Position: Outside}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.add(r.Path)
		_, _ = w.Write([]byte("text"))
	})
	mux.Handle(r.Path, broken(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)))
	mux.Handle(strings.Replace(r.Path, "true", "false", 1), broken(handler))
	c := client{addr: Serve(t, mux), t: t}
	found := compare(&c, &Framework{}, r, "", runs)
	if got := problems(nil, found); len(got) != 2 || !strings.Contains(got[0]+got[1], "X-Count") {
		t.Errorf("found %q, want that X-Count differs twice", got)
	}
	listed := []Difference{{Fields: []string{"X-Count"}, Answer: First, Reason: "r"}, {Fields: []string{"X-Count"}, Answer: Replay, Reason: "r"}}
	if got := problems(listed, found); len(got) > 0 {
		t.Errorf("listed differences are reported: %q", got)
	}
	if got := problems(append(listed, Difference{Layers: []string{"gone"}, Answer: First, Reason: "r"}), found); len(got) != 1 {
		t.Errorf("found %q, want the difference that is gone", got)
	}
}

// A handler whose kept response comes from another run is found.
func TestSecondRunIsFound(t *testing.T) {
	t.Parallel()
	runs := new(counter)
	r := Route{Path: "/l/outside/true/text"}
	c := client{t: t, addr: Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.add(r.Path)
		_, _ = w.Write([]byte("text"))
	}))}
	if got := problems(nil, compare(&c, &Framework{}, r, "", runs)); len(got) != 1 || !strings.Contains(got[0], "runs") {
		t.Errorf("found %q, want a second run", got)
	}
}
