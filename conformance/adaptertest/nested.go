package adaptertest

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

var nestedCases = []testCase{
	{
		conformance.Case{ID: "R51a", Rule: "A guard that stands inside of itself, on a group and on its route, passes its own request: the handler runs once, and its response is kept once.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Inner: func(outer *protocol.Guard) (*protocol.Guard, error) { return outer, nil }})
			c := e.post(echoes).withBody("the whole body")
			first := srv.run(c)
			srv.wantBody(first, c.body)
			srv.wantOneCompletion()
			srv.replays(c, first)
			srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R51b", Rule: "A guard that stands inside of another refuses the request, whatever is different: policy, identity or engine. Nothing runs, and the operator is told which guards they are.", Source: "profile"},
		func(e *env) {
			var mu sync.Mutex
			var told []string // the errors of refused requests
			observer := reprise.ObserverFunc(func(_ context.Context, event reprise.Event) {
				if event.Outcome == reprise.Failed && event.Err != nil {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, event.Err.Error())
				}
			})
			derived := func(change func(*protocol.Config)) InnerGuard {
				return func(outer *protocol.Guard) (*protocol.Guard, error) { return outer.With(change) }
			}
			for _, inner := range []InnerGuard{
				derived(func(c *protocol.Config) { c.Label, c.Preset = "payments", reprise.AtMostOnce }),
				derived(func(c *protocol.Config) { c.Label, c.Endpoint = "payments", "payments" }),
				func(*protocol.Guard) (*protocol.Guard, error) {
					return protocol.New(e.fixture.Open(e), protocol.Config{Label: "payments", Engine: reprise.Config{Observer: observer, Log: slog.New(slog.DiscardHandler)}})
				},
			} {
				srv := e.serve(Options{Guard: protocol.Config{Label: "service"}, Inner: inner, Engine: reprise.Config{Observer: observer}})
				c := e.post(created)
				for range 2 { // the first leaves no key held
					srv.refuses(c, protocol.CodeInternalError)
				}
				srv.run(c.withKeys())
				mu.Lock()
				if len(told) != 2 || !strings.Contains(told[0], `"payments"`) || !strings.Contains(told[0], `"service"`) {
					e.Errorf("the operator is told %q, want the names of both guards for each request", told)
				}
				told = nil
				mu.Unlock()
			}
		},
	},
}
