package stacks_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/proxy"
)

// TestProxyStacks has the layers in front of the proxy (outside) or in its upstream
// (inside). A response to a request with a key has to equal that to one without, which
// the proxy passes on.
func TestProxyStacks(t *testing.T) {
	t.Parallel()
	stack.Run(t, stack.Framework{
		Layers: slices.Collect(maps.Keys(layers)),
		Serve: func(t *testing.T, _ *protocol.Guard, routes []stack.Route) string {
			t.Helper()
			front, upstream := http.NewServeMux(), http.NewServeMux()
			forwarded := newProxy(t, stack.Serve(t, upstream))
			for _, r := range routes {
				var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					r.Ran()
					kinds[r.Kind](w, req)
				})
				f := forwarded
				switch r.Position {
				case stack.Inside:
					h = layers[r.Layer](h)
				case stack.Outside:
					f = layers[r.Layer](f)
				}
				upstream.Handle("POST "+r.Path, h)
				front.Handle("POST "+r.Path, f)
			}
			return stack.Serve(t, front)
		},
		Differences: []stack.Difference{
			{
				Kinds: []string{"panics"}, Answer: stack.Replay,
				Reason: "the proxy sees a lost answer: 502, and 409 outcome-unknown after it",
			},
			{
				Layers: []string{"gorilla.CORS", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
				Fields: []string{"Access-Control-Allow-Origin"},
				Reason: "CORS fields answer one origin and are never kept (R14): CORS belongs in front of the proxy",
			},
		},
	})
}

func newProxy(t *testing.T, upstream string) http.Handler {
	t.Helper()
	c, err := proxy.Parse([]byte("upstream = \"http://" + upstream + "\"\nscope = \"unscoped\"\n[default]\npreset = \"recoverable\""))
	if err != nil {
		t.Fatal(err)
	}
	h, err := proxy.New(memstore.New(), c, proxy.Options{Engine: reprise.Config{Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.WithoutCancel(t.Context())) })
	return h
}
