package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestDemoShowsEveryStep(t *testing.T) {
	t.Parallel()
	said := program.Start(t, "-demo", "-addr", "127.0.0.1:0").End(t)
	for _, want := range []string{
		"1. The first", "2. Its retry", "3. Of five", "409 Conflict (4 times)", "4. A key", "5. An order", "6. A handler", "7. A client",
		"8. A process", "9. An operator", "Idempotent-Replayed: true", "17 requests made 5 orders.\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in the transcript\n%s", want, said)
		}
	}
}

// faulty is a store that forgets responses, or those that an operator records.
type faulty struct {
	records

	completed, resolved bool // forgets them
}

func (f faulty) Complete(ctx context.Context, r store.CompleteRequest) error {
	if f.completed {
		return f.Release(ctx, r.ID, r.Owner)
	}
	return f.records.Complete(ctx, r)
}

func (f faulty) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if f.resolved {
		r = store.Resolution{Fence: r.Fence, Forget: true}
	}
	return f.records.Resolve(ctx, id, r)
}

func TestDemoFailsOnUnexpectedResponses(t *testing.T) {
	t.Parallel()
	for step, faulty := range map[string]faulty{"step 2: want ": {completed: true}, "step 9: want ": {resolved: true}} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "records.db")
			records, closeFile, err := openFile(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(closeFile)
			faulty.records = records
			s, err := newShop(t.Context(), t.Output(), "127.0.0.1:0", file, faulty)
			if err != nil {
				t.Fatal(err)
			}
			err = (&transcript{s, io.Discard}).steps(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), step) {
				t.Errorf("error %v, want %q", err, step)
			}
			if err := s.close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The port is taken, and there is no browser to open.
func TestConsoleShowsTheStuckOrder(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	process := program.Start(t, "-open", "-addr", taken.Addr().String())
	port := process.Await(t, `Port [0-9]+ is taken: ([0-9]+), the next free one, is used instead\.\n`)
	base := process.Await(t, `The console: (\S+)/idempotency/\n`)
	process.Await(t, `stuck: `+idOf("order-stuck").Short()+`\. A process was killed`)
	if base != "http://127.0.0.1:"+port {
		t.Errorf("the console is at %s, not on port %s", base, port)
	}
	service := &shop{url: base}
	for key, state := range map[string]store.RecordState{"order-done": store.StateCompleted, "order-stuck": store.StateLapsed} {
		page, err := service.send(t.Context(), http.MethodGet, "/idempotency/records?store=orders&state="+state.String(), "", "", "")
		if err != nil || !strings.Contains(page.body, idOf(key).Short()) {
			t.Errorf("%s is not listed as %v: %v: %+v", key, state, err, page)
		}
	}
	if got, err := service.order(t.Context(), "order-stuck", book); err != nil || got.status != http.StatusConflict || !strings.Contains(got.body, "outcome-unknown") {
		t.Errorf("the client of the stuck order got %+v, %v", got, err)
	}
	process.Interrupt(t)
}
