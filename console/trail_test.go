package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
)

// The trail of a console has the resolutions made by it, also without engines or events.
func TestTrailNeedsNoEngine(t *testing.T) {
	inTime(t, func(b *bench) {
		access := func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }
		engines := []console.Engine{{Name: "main", Engine: b.engine}}
		for what, c := range map[string]console.Config{
			"none of them": {}, "events only": {Events: console.NewEvents()}, "an engine only": {Engines: engines},
			"an engine of another observer": {Engines: engines, Events: console.NewEvents()},
		} {
			b.serve([]console.Store{{Name: "main", Store: b.store}}, access, c)
			id, fence := b.lapsed(what)
			if got := b.post(recordPage(id), answerForm(id, fence)); got.status != 303 {
				b.Fatalf("%s: resolve: %d: %s", what, got.status, got.text)
			}
			for _, path := range []string{"/trail", recordPage(id)} {
				b.want(what, b.get(path), 200, "ada", "ledger entry 17")
			}
		}
	})
}

// The events of resolutions are kept apart, so that no flood of others pushes them out.
func TestTrailOutlivesOtherEvents(t *testing.T) {
	inTime(t, func(b *bench) {
		id, fence := b.lapsed("stuck")
		if got := b.post(recordPage(id), answerForm(id, fence)); got.status != 303 {
			b.Fatalf("resolve: %d", got.status)
		}
		for range 5000 {
			b.events.Observe(b.Context(), reprise.Event{Kind: reprise.EventRenewed})
		}
		b.want("trail", b.get("/trail"), 200, id.Short(), "ledger entry 17")
		for n := range 600 {
			b.events.Observe(b.Context(), reprise.Event{Kind: reprise.EventResolved, Reason: fmt.Sprintf("number %d.", n)})
		}
		got := b.get("/trail")
		b.want("trail", got, 200, "number 599.", "number 100.")
		if strings.Contains(got.text, "number 99.") || strings.Index(got.text, "number 599.") > strings.Index(got.text, "number 100.") {
			b.Error("the trail is not the newest 500, the newest first")
		}
	})
}
