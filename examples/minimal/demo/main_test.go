package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
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

// forgetful is a store that forgets responses, or those that an operator records.
type forgetful struct {
	records

	completed, resolved bool // forgets them
}

func (f forgetful) Complete(ctx context.Context, r store.CompleteRequest) error {
	if f.completed {
		return f.Release(ctx, r.ID, r.Owner)
	}
	return f.records.Complete(ctx, r)
}

func (f forgetful) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if f.resolved {
		r = store.Resolution{Fence: r.Fence, Forget: true}
	}
	return f.records.Resolve(ctx, id, r)
}

func TestDemoFailsOnUnexpectedResponses(t *testing.T) {
	t.Parallel()
	for step, records := range map[string]forgetful{
		"step 2: want ": {memstore.New(), true, false}, "step 9: want ": {memstore.New(), false, true},
	} {
		s, err := newShop(t.Context(), "127.0.0.1:0", records)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&steps{s, io.Discard}).run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), step) {
			t.Errorf("error %v, want %q", err, step)
		}
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
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
