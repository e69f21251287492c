package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestDemoShowsEveryStep(t *testing.T) {
	t.Parallel()
	said := program.Start(t, "-print", "-addr", "127.0.0.1:0").End(t)
	for _, want := range []string{
		"1. The first", "2. Its retry", "3. Of five", "409 Conflict (4 times)", "4. A key", "5. An order", "6. A handler", "7. A client",
		"8. The handler", "9. An operator", "Idempotent-Replayed: true", "17 requests made 5 orders.\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in the transcript\n%s", want, said)
		}
	}
}

func TestConsoleShowsTheStuckOrder(t *testing.T) {
	t.Parallel()
	process := program.Start(t, "-addr", "127.0.0.1:0")
	service := &shop{url: process.Await(t, `The console: (\S+)/idempotency/\n`)}
	process.Await(t, `stuck: `+idOf("order-stuck").Short()+`\. The warehouse`)
	for key, state := range map[string]store.RecordState{"order-done": store.StateCompleted, "order-stuck": store.StateUnknown} {
		page, err := service.send(t.Context(), http.MethodGet, "/idempotency/records?store=orders&state="+state.String(), "", "", "")
		if err != nil || !strings.Contains(page.body, idOf(key).Short()) {
			t.Errorf("%s is not listed as %v: %v: %+v", key, state, err, page)
		}
	}
	if got, err := service.order(t.Context(), "order-stuck", lost); err != nil || got.status != http.StatusConflict || !strings.Contains(got.body, "outcome-unknown") {
		t.Errorf("the client of the stuck order got %+v, %v", got, err)
	}
	process.Interrupt(t)
}
