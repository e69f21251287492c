package judge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

func TestCasesAreWhole(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range All {
		switch {
		case seen[c.ID] || c.Group() == c.ID:
			t.Errorf("%s: the ID is of another case, or has no group", c.ID)
		case !strings.HasSuffix(c.Sentence, ".") || c.Source == "" || c.Levels == Levels{} || c.run == nil:
			t.Errorf("%s: %+v", c.ID, c)
		}
		seen[c.ID] = true
	}
	for n := need(1); n != 0 && n <= patch; n <<= 1 {
		if n.reason() == "" {
			t.Errorf("need %b has no reason", n)
		}
	}
}

// unkeyedService answers each request with another number, and counts them.
func unkeyedService(t *testing.T) (*Options, *atomic.Int64) {
	t.Helper()
	n := new(atomic.Int64)
	return served(t, counting(n)), n
}

func counting(n *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n.Add(1))
	}
}

// served returns the options for a service that it starts.
func served(t *testing.T, handler http.HandlerFunc) *Options {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return optionsFor(t, server)
}

func optionsFor(t *testing.T, server *httptest.Server) *Options {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Options{
		Profile: Reprise, URL: u, Header: "Idempotency-Key", Body: "a", Another: "b", Parallel: 4, Slow: 100 * time.Millisecond, MaxTime: time.Minute,
		Client: &wire.Client{Limits: wire.Limits{Requests: 1000, Bytes: 1 << 30, Timeout: 10 * time.Second}},
	}
}

func quiet(int, int, string) {}

// judged returns the report of a run, which has to end with one.
func judged(t *testing.T, o *Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestServiceOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(counting(new(atomic.Int64)))
	t.Cleanup(server.Close)
	o := optionsFor(t, server)
	o.Only = []string{"presence/optional", "retries/lost"}
	var unreachable *wire.DialError
	if _, err := Run(t.Context(), o, quiet); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the certificate's authority: %v", err)
	}
	o.Client.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
	r := judged(t, o)
	if r.Results[0].State != Met || r.Results[1].State != NotMet {
		t.Errorf("%+v", r.Results)
	}
}

func TestLimitsEndARun(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*Options){
		"requests": func(o *Options) { o.Client.Limits.Requests = 13 },
		"bytes":    func(o *Options) { o.Client.Limits.Bytes = 100_000 },
		"retries":  func(o *Options) { o.Client.Limits.Requests, o.Only = 9, []string{"retries/lost"} },
		"time":     func(o *Options) { o.MaxTime, o.Only = 2*time.Second, []string{"replay/date"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, requests := unkeyedService(t)
			o.Only = []string{"replay/once", "large/request", "binding/refused"}
			limit(o)
			r := judged(t, o)
			last := r.Results[len(r.Results)-1]
			if r.Ended != last.Detail || last.State != NotShown || !strings.Contains(last.Detail, wire.ErrLimit.Error()+": ") {
				t.Errorf("the last case: %+v", last)
			}
			if n := requests.Load(); n > 100 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestUnusableEndpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"not found":    {http.NotFound, "answers 404"},
		"always alike": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "order") }, "answered alike (200 order)"},
	} {
		o := served(t, c.handler)
		var unusable *UnusableError
		if _, err := Run(t.Context(), o, quiet); !errors.As(err, &unusable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApart(t *testing.T) {
	t.Parallel()
	var low, high []time.Duration
	for i := range 40 {
		low, high = append(low, time.Duration(i)*time.Millisecond), append(high, time.Duration(100+i)*time.Millisecond)
	}
	if z, by := apart(high, low); z < 7 || by != 100*time.Millisecond {
		t.Errorf("z = %v by %v", z, by)
	}
	if z, by := apart(low, low); z < -3 || z > 3 || by != 0 {
		t.Errorf("z = %v by %v", z, by)
	}
}
