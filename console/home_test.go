package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// slow is a store whose count takes longer than a page waits, and shows records twice.
type slow struct {
	*memstore.Store

	counts *atomic.Int64
}

func (s slow) Count(ctx context.Context, open func(*store.Record)) (finished map[store.LabelState]int, err error) {
	s.counts.Add(1)
	for range 2 {
		time.Sleep(3 * time.Second / 2) //nolint:forbidigo // the clock of the bubble
		finished, err = s.Store.Count(ctx, open)
	}
	return finished, err
}

// uncountable is a store that cannot count, and has more records than can be listed.
type uncountable struct {
	store.Store
	store.Inspector
}

func (u uncountable) List(ctx context.Context, q store.Query) (store.Page, error) {
	time.Sleep(400 * time.Millisecond) //nolint:forbidigo // the clock of the bubble
	q.After = ""
	page, err := u.Inspector.List(ctx, q)
	page.Next = "more"
	return page, err
}

// denied is one that may be listed, and whose count is refused, as by a time-out.
type denied struct{ uncountable }

func (denied) Count(context.Context, func(*store.Record)) (map[store.LabelState]int, error) {
	return nil, store.ErrUnavailable
}

// The overview counts the records of all processes by their policy. It says "at least"
// until a store was read to its end, and then exactly how many are stuck, and since when:
// a record that is shown twice is one. Pages that are read meanwhile share the count, and
// the store rests after it.
func TestOverviewCountsTheRecordsOfAllProcesses(t *testing.T) {
	inTime(t, func(b *bench) {
		b.claimed(store.ID{1}, store.ClaimRequest{Policy: store.Policy{Label: "refunds"}})
		since := time.Now().UTC().Format("2006-01-02 15:04:05 UTC")
		b.lapsed("stuck")
		b.answered("done", protocol.Response{Status: 200})
		row := func(label string, running, completed int) string {
			return fmt.Sprintf(`<th scope="row">%s</th> <td data-label="Running">%d</td> <td data-label="Completed">%d</td>`, label, running, completed)
		}
		text := strings.Join(strings.Fields(b.get("/").text), " ")
		if !strings.Contains(text, row("payments", 0, 1)) || !strings.Contains(text, row("refunds", 1, 0)) {
			b.Errorf("the overview: %s", text)
		}
		counts := new(atomic.Int64)
		b.serve([]console.Store{{Name: "main", Store: slow{b.store, counts}}}, look, console.Config{})
		b.want("at first", b.get("/"), 200, "The count has not ended yet", "<dd>≥ 0</dd>")
		b.want("half", b.get("/"), 200, "<strong>≥ 1</strong> stuck", "at least so many")
		time.Sleep(time.Second / 2) //nolint:forbidigo // the clock of the bubble
		got := b.get("/")
		b.want("whole", got, 200, "<strong>1</strong> stuck, since "+since, `<th scope="row">payments</th><td data-label="Stuck">1</td>`)
		if n := counts.Load(); strings.Contains(got.text, "≥") || n != 1 {
			b.Errorf("%d counts read all records: %s", n, got.text)
		}
		for after, want := range []int64{1, 2} {
			time.Sleep(time.Duration(after) * 30 * time.Second) //nolint:forbidigo // the clock of the bubble
			if b.get("/"); counts.Load() != want {
				b.Errorf("%d counts, want %d", counts.Load(), want)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
	})
}

// The numbers of a store that cannot count, and is too large to list, are "at least".
func TestOverviewListsAStoreThatCannotCount(t *testing.T) {
	inTime(t, func(b *bench) {
		b.lapsed("stuck")
		b.answered("done", protocol.Response{Status: 200})
		b.serve([]console.Store{{Name: "main", Store: denied{uncountable{b.store, b.store}}}}, look, console.Config{})
		b.get("/")
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		b.want("a count that is refused", b.get("/"), 200, "<strong>≥ 1</strong> stuck", `<td data-label="Completed">≥ 3</td>`)
		b.serve([]console.Store{{Name: "main", Store: uncountable{b.store, b.store}}}, look, console.Config{})
		b.want("at first", b.get("/"), 200, "<strong>≥ 1</strong> stuck", `class="counting"`)
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		got := b.get("/")
		b.want("afterwards", got, 200, "<strong>≥ 1</strong> stuck", "it cannot count", `<td data-label="Completed">≥ 3</td>`)
		if strings.Contains(got.text, `class="counting"`) {
			b.Error("it will not be counted, and the page refreshes for it")
		}
	})
}

// A count that fails, panics or is cut by its time is no "nothing is stuck"; the store
// rests after it, and the pages go on. A resolution is followed by another count.
func TestOverviewSaysNothingOfAStoreThatItDidNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		list func(ctx context.Context) error
		want string
	}{
		"fails":  {func(context.Context) error { return store.ErrUnavailable }, `class="notice failed"`},
		"panics": {func(context.Context) error { panic("a bug in a decorator") }, `class="notice failed"`},
		"is cut": {func(context.Context) error { time.Sleep(3 * time.Minute); return nil }, "was not read to its end"}, //nolint:forbidigo // the clock of the bubble
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(b *bench) {
				b.lapsed("stuck")
				b.serve([]console.Store{{Name: "main", Store: faulty{b.store, c.list, nil}}}, look, console.Config{})
				b.get("/")
				time.Sleep(4 * time.Minute) //nolint:forbidigo // the clock of the bubble
				got := b.get("/")
				if !strings.Contains(got.text, c.want) || strings.Contains(got.text, "No stuck operation") || got.status != 200 {
					b.Errorf("%d: %s", got.status, got.text)
				}
			})
		})
	}
}

// A count of a large store is old for a while. Whoever resolves a record does not find it
// among the stuck ones afterwards.
func TestOverviewCountsAgainAfterAResolution(t *testing.T) {
	inTime(t, func(b *bench) {
		id, fence := b.lapsed("stuck")
		slowly := faulty{b.store, func(context.Context) error { time.Sleep(time.Minute); return nil }, nil} //nolint:forbidigo // the clock of the bubble
		b.serve([]console.Store{{Name: "main", Store: slowly}}, func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }, console.Config{})
		b.get("/")
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		b.want("counted", b.get("/"), 200, "<strong>1</strong> stuck", id.Short())
		if got := b.post(recordPage(id), answerForm(id, fence)); got.status >= 400 {
			b.Fatalf("%d: %s", got.status, got.text)
		}
		if got := b.get("/"); strings.Contains(got.text, id.Short()) || strings.Contains(got.text, "</strong> stuck") {
			b.Errorf("it is stuck still: %s", got.text)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of the bubble
		b.want("counted again", b.get("/"), 200, "No stuck operation")
	})
}

// A store that does not answer is the only one that is called unavailable.
func TestStoreThatHangsIsTheOnlyOneUnavailable(t *testing.T) {
	inTime(t, func(b *bench) {
		id, _ := b.lapsed("stuck")
		hung := faulty{b.store, nil, func(ctx context.Context, _ store.ID) error { <-ctx.Done(); return ctx.Err() }}
		b.serve([]console.Store{{Name: "down", Store: hung}, {Name: "main", Store: b.store}}, look, console.Config{})
		got := b.get("/")
		b.want("home", got, 200, id.Short(), `down: <span class="state unreadable">unavailable`, `main: <span class="state completed">answers`)
	})
}
