package stacks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/proxy"
)

// Layers stand in front of the proxy (outside) or in its upstream (inside), and bare is a
// request without a key, which the proxy passes on. Steps after which the upstream's
// response breaks off are not drawn: TestLostAnswerIsUnknown has them.
func TestProxyDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		upstream := draws.Serve(t, "upstream", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one := cases.Find(r.Header.Get(draws.CaseField))
			layered(one.Inside, programOf(one)).ServeHTTP(w, r)
		}))
		proxies := map[draws.Policy]http.Handler{
			draws.Leased:     newProxy(t, upstream.Addr, "recoverable"),
			draws.AtMostOnce: newProxy(t, upstream.Addr, "at-most-once"),
		}
		front := draws.Serve(t, "http.Server", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one := cases.Find(r.Header.Get(draws.CaseField))
			layered(one.Outside, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer one.Watch()
				proxies[one.Policy].ServeHTTP(w, r)
			})).ServeHTTP(w, r)
		}))
		f := layersOfHTTP()
		f.Name, f.Leased, f.Hosts = "proxy", true, []draws.Host{front}
		f.Ops = slices.DeleteFunc(slices.Clone(draws.HTTPOps), func(op string) bool {
			return slices.Contains([]string{"panic", "cut", "hijack", "length", "file"}, op)
		})
		f.Documented = append(f.Documented, draws.Difference{
			Rule: "the upstream's framing ends at the proxy, and so does the order of announcements", Fields: []string{"framing", "Content-Length", "Trailer"},
			Applies: func(*draws.Draw, *draws.Seen) bool { return true },
		}, draws.Difference{
			Rule:   "with a key the proxy passes no flush on, so that an empty body has no trailer that was not announced, and a body its media type",
			Fields: []string{"trailers", "Trailer", "Content-Type"},
			Applies: func(d *draws.Draw, s *draws.Seen) bool {
				return d.Does("flush", "stream", "prefixed") || s.Bare["Content-Type"] == nil
			},
		}, draws.Difference{
			Rule: "R14: the field of a layer in front is kept beside that of the upstream's, which is not", Answer: draws.Retry, Fields: []string{"Access-Control-Allow-Origin"},
			Applies: func(d *draws.Draw, _ *draws.Seen) bool {
				return d.Has(d.Outside, "gorilla.CORS") && d.Has(d.Inside, "gorilla.CORS")
			},
		})
		return f
	})
}

func newProxy(t *testing.T, upstream, preset string) http.Handler {
	t.Helper()
	c, err := proxy.Parse(fmt.Appendf(nil, "upstream = \"http://%s\"\nscope = \"unscoped\"\n[default]\npreset = %q\nmax_response_body = %d\n", upstream, preset, draws.BodyLimit))
	labtest.Must(t, err)
	h, err := proxy.New(memstore.New(), c, proxy.Options{Engine: reprise.Config{Log: slog.New(slog.DiscardHandler)}})
	labtest.Must(t, err)
	t.Cleanup(func() { _ = h.Close(context.WithoutCancel(t.Context())) })
	return h
}
