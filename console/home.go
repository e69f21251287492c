package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// How much the home page reads of each store.
const (
	homeLook  = 400 * time.Millisecond // after which no further page of the listing is read
	homeShown = 10                     // records that need a human
)

// homeView is the home page.
type homeView struct {
	Running   int // attempts of the engines of this process
	Waiting   int
	Sum       slot
	Share     int // replays among all completed operations, in percent
	Answered  uint64
	Stores    []storeView
	Stuck     int
	Partial   bool // a store was not read to its end
	Sparkline []bar
	Recording bool // there is a history
}

// storeView is a store on the home page.
type storeView struct {
	Name     string
	Problem  string // it could not be read
	Latency  time.Duration
	Findings []store.Finding
	Needs    []store.Record // records that need a human
	Stuck    int
	Scanned  int
	Total    int64
	More     string // cursor behind the records read; empty: all were read
}

// bar is a slot of the history, drawn.
type bar struct {
	X, Height, Replayed int
}

// Needs of the home page: records that stay as they are until a person does something.
var needsHuman = store.States(store.StateLapsed, store.StateUnknown, store.StateUnreadable)

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	view := homeView{Recording: s.config.Events != nil}
	for _, engine := range s.config.Engines {
		stats := engine.Engine.Stats()
		view.Running += stats.Running
		view.Waiting += stats.Waiting
	}
	for _, store := range s.stores {
		shown := look(ctx, store)
		view.Stuck += shown.Stuck
		view.Partial = view.Partial || shown.More != ""
		view.Stores = append(view.Stores, shown)
	}
	history := s.config.Events.history()
	view.Sum = total(history)
	if view.Answered = view.Sum.Started + view.Sum.Replayed; view.Answered > 0 {
		view.Share = int(100 * view.Sum.Replayed / view.Answered) //nolint:gosec // at most 100
	}
	view.Sparkline = sparkline(history)
	s.show(w, r, http.StatusOK, "home", page{Heading: "Overview", View: view})
}

// look reads the records of a store for the home page: as many as fit into homeLook.
func look(ctx context.Context, st Store) storeView {
	view := storeView{Name: st.Name}
	inspector, _ := store.As[store.Inspector](st.Store)
	began := time.Now()
	_, err := inspector.Inspect(ctx, store.ID{}) // the digest of no known operation
	view.Latency = time.Since(began)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		_, view.Problem = storeFailure(err)
		return view
	}
	if checker, ok := store.As[store.Checker](st.Store); ok {
		if view.Findings, err = checker.Check(ctx); err != nil {
			_, view.Problem = storeFailure(err)
		}
	}
	q := store.Query{States: needsHuman, Limit: 1000}
	for {
		page, err := inspector.List(ctx, q)
		if err != nil {
			_, view.Problem = storeFailure(err)
			return view
		}
		view.Stuck += len(page.Records)
		view.Needs = append(view.Needs, page.Records[:min(len(page.Records), homeShown-len(view.Needs))]...)
		view.Scanned += page.Scanned
		view.Total = max(view.Total, page.Total)
		q.After = page.Next
		if q.After == "" || time.Since(began) > homeLook {
			view.More = q.After
			return view
		}
	}
}

// The size of the sparkline, in its own units.
const (
	barWidth        = 6
	sparklineHeight = 48
)

func sparkline(history []slot) []bar {
	most := uint64(1)
	for _, s := range history {
		most = max(most, s.Started+s.Replayed)
	}
	bars := make([]bar, 0, len(history))
	for i, s := range history {
		scale := func(n uint64) int { return int(n * sparklineHeight / most) } //nolint:gosec // at most the height
		bars = append(bars, bar{X: i * barWidth, Height: scale(s.Started + s.Replayed), Replayed: scale(s.Replayed)})
	}
	return bars
}

// Y is where the bar begins, for the template.
func (b bar) Y() int { return sparklineHeight - b.Height }

// ReplayedY is where the part of the replays begins, for the template.
func (b bar) ReplayedY() int { return sparklineHeight - b.Replayed }
