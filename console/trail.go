package console

import (
	"net/http"
	"time"
)

// trailView is the page of the trail: the resolutions that this process made or saw.
type trailView struct {
	Began time.Time
	Deeds []event // the newest first
	Store string  // the only store; empty with several, because an event does not have its store
}

func (s *site) trail(w http.ResponseWriter, r *http.Request) {
	view := trailView{Began: s.events.began, Deeds: s.events.resolutions()}
	if len(s.stores) == 1 {
		view.Store = s.stores[0].Name
	}
	s.show(w, r, http.StatusOK, "trail", page{Heading: "Trail", Live: true, View: view})
}
