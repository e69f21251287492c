package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// How much the home page reads of each store.
const (
	homeLook  = 400 * time.Millisecond // after which it looks no further for those that need a person
	countLook = 200 * time.Millisecond // after which it counts no further
	homeShown = 10                     // records that need a person
	scanned   = 1000                   // records of one page of the store's listing
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
	Needs    []row // records that need a person
	Stuck    int
	Waiting  int // lapsed records that a retry takes over
	Scanned  int
	Total    int64
	More     string // cursor behind the records read; empty: all were read
	Counts   []count
	AtLeast  bool // the counts are of a part of the store
	Counted  int  // records
}

// count is how many records of a policy there are, of all processes.
type count struct {
	Label                                       string
	Running, Stuck, Waiting, Completed, Expired int
}

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
	for _, store := range s.stores {
		shown := s.look(r.Context(), store)
		view.Stuck += shown.Stuck
		view.Partial = view.Partial || shown.More != ""
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

// look reads the records of a store for the home page: as many as fit into its time.
func (s *site) look(ctx context.Context, st Store) storeView {
	ctx, cancel := context.WithTimeout(ctx, patience) // a store that hangs takes no time from the next
	defer cancel()
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
	view.More, err = scan(ctx, inspector, store.Query{States: operate.MayNeedPerson, Limit: scanned}, homeLook, func(page store.Page) int {
		needs := slices.DeleteFunc(page.Records, func(r store.Record) bool { return !s.needsHuman(&r) })
		view.Stuck += len(needs)
		view.Waiting += len(page.Records) - len(needs)
		view.Needs = append(view.Needs, rows(needs[:min(len(needs), homeShown-len(view.Needs))])...)
		view.Scanned += page.Scanned
		view.Total = max(view.Total, page.Total)
		return scanned
	})
	if err == nil {
		err = view.count(ctx, inspector, s.needsHuman)
	}
	if err != nil {
		_, view.Problem = storeFailure(err)
	}
	return view
}

// count counts the records of a store by policy and state, as many as fit into its time.
func (v *storeView) count(ctx context.Context, inspector store.Inspector, needsHuman func(*store.Record) bool) error {
	counts := map[string]*count{}
	more, err := scan(ctx, inspector, store.Query{Limit: scanned}, countLook, func(page store.Page) int {
		v.Counted += len(page.Records)
		for i := range page.Records {
			r := &page.Records[i]
			c := counts[r.Label]
			if c == nil {
				c = &count{Label: r.Label}
				counts[r.Label] = c
			}
			switch {
			case r.State == store.StateRunning:
				c.Running++
			case r.State == store.StateCompleted:
				c.Completed++
			case r.State == store.StateExpired:
				c.Expired++
			case needsHuman(r):
				c.Stuck++
			default:
				c.Waiting++
			}
		}
		return scanned
	})
	v.AtLeast = more != ""
	for _, c := range counts {
		v.Counts = append(v.Counts, *c)
	}
	slices.SortFunc(v.Counts, func(a, b count) int { return strings.Compare(a.Label, b.Label) })
	return err
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
