package harness

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
)

// A verdict is a [testing.TB] that counts failures. One that is fatal ends its check by a
// panic.
type verdict struct {
	testing.TB

	failures int
}

func (v *verdict) Helper()               {}
func (v *verdict) Errorf(string, ...any) { v.failures++ }
func (v *verdict) Fatalf(string, ...any) { v.failures++; panic(v) }

// Each check rejects applications whose responses are marked as replays, differ, or are
// of another form, as each path says.
func TestChecksRejectWrongApplications(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	app := New(t, memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, has := seen[r.Header.Get("Idempotency-Key")], func(part string) bool { return strings.Contains(r.URL.Path, part) }
		seen[r.Header.Get("Idempotency-Key")]++
		if has("mark") && n > 0 || has("early") {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if has("field") {
			w.Header().Set("X-Made", strconv.Itoa(n))
		}
		if has("body") {
			fmt.Fprint(w, n)
		}
		if has("form") {
			_, _ = w.Write([]byte("paid " + r.FormValue("amount"))) //nolint:gosec // no browser shows it
		}
	}))
	twice, afresh := func(path string) { app.Twice("POST", path) }, func(path string) { app.Afresh("POST", path) }
	for _, c := range []struct {
		check    func(path string)
		path     string
		failures int
	}{
		{twice, "/mark", 0},
		{twice, "/nothing", 1},
		{twice, "/mark/early", 1},
		{twice, "/mark/body", 1},
		{twice, "/mark/field", 1},
		{twice, "/mark/body/field", 2},
		{afresh, "/body", 0},
		{afresh, "/mark", 1},
		{afresh, "/early", 1},
		{func(path string) { app.CheckForm(path, "urlencoded", URLEncoded) }, "/form", 1}, // the other amount is paid
		{func(path string) { app.CheckForm(path, "multipart", Multipart) }, "/form", 1},
	} {
		v := &verdict{TB: t}
		app.tb = v
		func() {
			defer func() {
				if p := recover(); p != nil && p != v {
					panic(p)
				}
			}()
			c.check(c.path)
		}()
		if v.failures != c.failures {
			t.Errorf("%s: %d failures, want %d", c.path, v.failures, c.failures)
		}
	}
}
