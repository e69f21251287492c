package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The trail of a console has the resolutions made by it, also without engines or events.
func TestTrailNeedsNoEngine(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	engine, err := reprise.New(st, reprise.Config{})
	must(t, err)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	engines := []console.Engine{{Name: "main", Engine: engine}}
	for what, c := range map[string]console.Config{
		"none of them": {}, "events only": {Events: console.NewEvents()}, "an engine only": {Engines: engines},
		"an engine of another observer": {Engines: engines, Events: console.NewEvents()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			trailHasResolution(t, st, c, what)
		})
	}
}

func trailHasResolution(t *testing.T, st *memstore.Store, c console.Config, key string) {
	t.Helper()
	access := func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }
	pages, err := console.Handler([]console.Store{{Name: "main", Store: st}}, access, c)
	must(t, err)
	id := store.DeriveID("tenant", "", key)
	granted, err := st.Claim(t.Context(), store.ClaimRequest{ID: id, Owner: store.NewOwner(), Policy: store.Policy{Retention: time.Hour}, Lease: time.Millisecond})
	must(t, err)
	for record := (store.Record{}); record.State != store.StateLapsed; {
		record, err = st.Inspect(t.Context(), id)
		must(t, err)
	}
	form := answerForm(id, granted.Fence)
	form.Set("retention", "")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, recordPage(id), strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	if w.Code != 303 {
		t.Fatalf("resolve: %d: %s", w.Code, w.Body)
	}
	for _, path := range []string{"/trail", recordPage(id)} {
		w = httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if !strings.Contains(w.Body.String(), "ada") || !strings.Contains(w.Body.String(), "ledger entry 17") {
			t.Errorf("%s does not say who, and why: %s", path, w.Body)
		}
	}
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
