package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// slow is a store whose listing takes longer than a page counts.
type slow struct{ *memstore.Store }

func (s slow) List(ctx context.Context, q store.Query) (store.Page, error) {
	time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
	page, err := s.Store.List(ctx, q)
	page.Next, page.Total = "more", 7000
	return page, err
}

// The overview counts the records of all processes by their policy, and says "at least"
// where it stopped early.
func TestOverviewCountsTheRecordsOfAllProcesses(t *testing.T) {
	inTime(t, func(b *bench) {
		b.claimed(store.ID{1}, store.ClaimRequest{Policy: store.Policy{Label: "refunds"}})
		b.lapsed("stuck")
		b.answered("done", protocol.Response{Status: 200})
		counted := func(p page) string { return strings.Join(strings.Fields(p.text), " ") }
		row := func(label, most string, running, stuck, completed int) string {
			return fmt.Sprintf(`<th scope="row">%s</th> <td data-label="Running">%s%d</td> <td data-label="Stuck">%[2]s%[4]d</td> <td data-label="Completed">%[2]s%[5]d</td>`,
				label, most, running, stuck, completed)
		}
		text := counted(b.get("/"))
		if !strings.Contains(text, row("payments", "", 0, 1, 1)) || !strings.Contains(text, row("refunds", "", 1, 0, 0)) {
			b.Errorf("the overview: %s", text)
		}
		b.serve([]console.Store{{Name: "main", Store: slow{b.store}}}, look, console.Config{})
		got := b.get("/")
		if text := counted(got); !strings.Contains(text, row("refunds", "≥ ", 1, 0, 0)) {
			b.Errorf("the overview of a large store: %s", text)
		}
		b.want("large", got, 200, "at least so many, counted in 3 of about 7000")
	})
}

// hung is a store whose server does not answer.
type hung struct{ *memstore.Store }

func (hung) Inspect(ctx context.Context, _ store.ID) (store.Record, error) {
	<-ctx.Done()
	return store.Record{}, ctx.Err()
}

// A store that does not answer is the only one that is called unavailable.
func TestStoreThatHangsIsTheOnlyOneUnavailable(t *testing.T) {
	inTime(t, func(b *bench) {
		id, _ := b.lapsed("stuck")
		b.serve([]console.Store{{Name: "down", Store: hung{b.store}}, {Name: "main", Store: b.store}}, look, console.Config{})
		got := b.get("/")
		b.want("home", got, 200, id.Short(), `down: <span class="state unreadable">unavailable`, `main: <span class="state completed">answers`)
	})
}
