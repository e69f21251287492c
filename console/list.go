package console

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

const (
	listShown = 50                     // records of a page
	listLook  = 600 * time.Millisecond // after which a page is shown even if it is not full
)

// states are the choices of the filter.
var states = []store.RecordState{store.StateLapsed, store.StateUnknown, store.StateUnreadable, store.StateRunning, store.StateCompleted, store.StateExpired}

// listView is a listing.
type listView struct {
	Store   string
	State   string
	States  []store.RecordState
	Label   string
	Older   string
	Records []store.Record
	Scanned int
	Total   int64
	First   bool         // it starts at the beginning
	Next    template.URL // query of the next page
}

func (s *site) list(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	view := listView{
		Store: form.Get("store"), State: form.Get("state"), States: states, Label: form.Get("label"), Older: form.Get("older"),
		First: form.Get("after") == "",
	}
	if view.Store == "" {
		view.Store = s.stores[0].Name
	}
	inspector, ok := s.inspector(view.Store)
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return
	}
	q := store.Query{Label: view.Label, After: form.Get("after"), Limit: listShown}
	if state := stateNamed(view.State); state != 0 {
		q.States = store.States(state)
	}
	if view.State != "" && q.States == 0 {
		s.fail(w, r, http.StatusBadRequest, "The state is none of lapsed, unknown, unreadable, running, completed and expired.")
		return
	}
	if view.Older != "" {
		d, err := time.ParseDuration(view.Older)
		if err != nil || d < 0 {
			s.fail(w, r, http.StatusBadRequest, `The age is not a duration such as "5m" or "36h".`)
			return
		}
		q.OlderThan = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for began := time.Now(); ; {
		page, err := inspector.List(ctx, q)
		if err != nil {
			status, message := storeFailure(err)
			s.fail(w, r, status, message)
			return
		}
		view.Records = append(view.Records, page.Records...)
		view.Scanned += page.Scanned
		view.Total = max(view.Total, page.Total)
		q.After = page.Next
		q.Limit = listShown - len(view.Records)
		if q.After == "" || q.Limit <= 0 || time.Since(began) > listLook {
			break
		}
	}
	if q.After != "" {
		next := url.Values{"store": {view.Store}, "after": {q.After}}
		for name, value := range map[string]string{"state": view.State, "label": view.Label, "older": view.Older} {
			if value != "" {
				next.Set(name, value)
			}
		}
		view.Next = template.URL(next.Encode()) //nolint:gosec // every value in it is escaped
	}
	notice := ""
	if form.Has("forgotten") {
		notice = "The record was forgotten. The next request with its key runs."
	}
	s.show(w, r, http.StatusOK, "list", page{Heading: "Records", Notice: notice, View: view})
}

// stateNamed returns the state that is called name, zero for no state.
func stateNamed(name string) store.RecordState {
	for _, state := range states {
		if state.String() == name {
			return state
		}
	}
	return 0
}
