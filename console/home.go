package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
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
	Since     time.Time // when the oldest of these was claimed; zero: not known
	Partial   bool      // a store was not read to its end
	Sparkline []bar
	Recording bool // there is a history
}

// storeView is a store on the home page.
type storeView struct {
	Name     string
	Problem  string // it could not be read
	Notice   string // it could be read in part
	Latency  time.Duration
	Findings []store.Finding
	Count    tally
}

// Empty reports whether the store was read to its end and has no record at all.
func (v storeView) Empty() bool { return !v.Count.At.IsZero() && len(v.Count.Counts) == 0 }

// bar is a slot of the history, drawn.
type bar struct {
	X, Height, Replayed int
}

// needsHuman reports whether a record stays as it is until a person resolves it.
func (s *site) needsHuman(r *store.Record) bool {
	return operate.NeedOf(r, s.config.Guards...) == operate.NeedsPerson
}

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	view := homeView{Recording: s.config.Events != nil}
	for _, engine := range s.config.Engines {
		stats := engine.Engine.Stats()
		view.Running += stats.Running
		view.Waiting += stats.Waiting
	}
	for i := range s.stores {
		s.surveys[i].start(s.stores[i].Store, s.needsHuman) //nolint:contextcheck // pages share the count
	}
	counted, cancel := context.WithTimeout(r.Context(), surveyWait)
	defer cancel()
	for i := range s.stores {
		shown := s.look(r.Context(), counted, i)
		view.Stuck += shown.Count.Stuck
		view.Since = older(view.Since, shown.Count.Since)
		view.Partial = view.Partial || shown.Count.At.IsZero()
		view.Stores = append(view.Stores, shown)
	}
	history := s.events.history()
	view.Sum = total(history)
	if view.Answered = view.Sum.Started + view.Sum.Replayed; view.Answered > 0 {
		view.Share = int(100 * view.Sum.Replayed / view.Answered) //nolint:gosec // at most 100
	}
	view.Sparkline = sparkline(history)
	s.show(w, r, http.StatusOK, "home", page{Heading: "Overview", Live: true, View: view})
}

// look reads store i for the home page. It waits for the counts until counted ends.
func (s *site) look(ctx, counted context.Context, i int) storeView {
	ctx, cancel := context.WithTimeout(ctx, patience) // a store that hangs takes no time from the next
	defer cancel()
	st := s.stores[i]
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
	switch view.Count, err = s.surveys[i].result(counted); {
	case errors.Is(err, errCut):
		view.Notice = "The store was not read to its end: it cannot count, or it takes more than " + duration(surveyTime) + ". There are at least so many records. reprise stuck reads all."
	case err != nil:
		_, view.Problem = storeFailure(err)
	}
	return view
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
