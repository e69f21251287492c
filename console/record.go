package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

// place is a record of a store.
type place struct {
	store     string
	inspector store.Inspector
	id        store.ID
}

// recordView is the page of a record.
type recordView struct {
	Store    string
	Record   row
	Known    bool        // this process has the policy of the record
	Next     string      // the client's next response
	Doubt    string      // why an answer may not be replayed
	Answer   *answerView // of a completed record
	Form     resolveForm // the refused input
	Events   []event
	Recorded bool   // the process keeps events
	Reveal   bool   // the fields and the body are shown
	Call     string // the downstream call whose key is shown; empty: none
}

// Lease says how the lease of a record that is not completed stands.
func (v *recordView) Lease() string {
	switch left := v.Record.Lease; {
	case v.Record.State == store.StateRunning:
		return duration(left) + " left"
	case v.Record.State == store.StateLapsed:
		return "ran out " + duration(-left) + " ago"
	default:
		return ""
	}
}

// Failure says which failure every retry gets, where a record keeps one.
func (v *recordView) Failure() string {
	switch {
	case v.Record.Failed && v.Record.Status > 0:
		return fmt.Sprintf("a failure is kept: %d", v.Record.Status)
	case v.Record.Failed:
		return "a failure is kept"
	case v.Answer != nil && v.Answer.Corrupt:
		return "the answer cannot be read"
	default:
		return ""
	}
}

// record shows one record.
func (s *site) record(w http.ResponseWriter, r *http.Request) {
	at, ok := s.place(w, r)
	if !ok {
		return
	}
	p := page{Live: true}
	if r.URL.Query().Get("done") == "answered" {
		p.Notice = "The answer was recorded. The next retry with this key gets it."
	}
	s.showRecord(w, r, http.StatusOK, at, p, resolveForm{})
}

// change makes the change of a form on a record's page, or reveals its response.
func (s *site) change(w http.ResponseWriter, r *http.Request) {
	at, ok := s.place(w, r)
	if !ok || !s.readForm(w, r, maxForm) {
		return
	}
	form := newResolveForm(r)
	switch {
	case form.Action == actionReveal && !may(r, Reveal):
		s.fail(w, r, http.StatusForbidden, "You may not see responses. Nothing was shown.")
	case form.Action == actionReveal:
		s.showRecord(w, r, http.StatusOK, at, page{}, form)
	case !may(r, Resolve):
		s.fail(w, r, http.StatusForbidden, "This console is read-only for you. Nothing was changed.")
	default:
		s.resolve(w, r, at, form)
	}
}

// place returns the record of a request's path, or shows why there is none.
func (s *site) place(w http.ResponseWriter, r *http.Request) (at place, ok bool) {
	at.store = r.PathValue("store")
	if at.inspector, ok = s.inspector(at.store); !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return at, false
	}
	var err error
	if at.id, err = store.ParseID(r.PathValue("id")); err != nil {
		s.fail(w, r, http.StatusNotFound, "An ID has 64 hexadecimal digits. Find looks for one by the first 8 or more.")
		return at, false
	}
	return at, true
}

// showRecord shows the page of a record, with a notice, and with a form as it was typed.
// It logs that a response is revealed before it shows it.
func (s *site) showRecord(w http.ResponseWriter, r *http.Request, status int, at place, p page, form resolveForm) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	record, err := at.inspector.Inspect(ctx, at.id)
	if err != nil {
		failure, message := storeFailure(err)
		if p.Notice != "" {
			message = p.Notice + " " + message
		}
		s.fail(w, r, max(status, failure), message)
		return
	}
	view := &recordView{
		Store: at.store, Record: newRow(&record), Known: s.knows(record.Label), Next: operate.NextOf(&record, s.config.Guards...).Text, Form: form,
		Events: s.events.of(at.id), Recorded: s.config.Events != nil,
		Reveal: form.Action == actionReveal, Call: r.URL.Query().Get("call"),
	}
	if answer, ok := operate.AnswerOf(&record); ok {
		view.Answer = showAnswer(&answer, record.Size)
	}
	if view.Answer != nil && view.Reveal {
		line := slog.NewRecord(time.Now(), slog.LevelWarn, "console: revealing a response", 0)
		line.AddAttrs(slog.String("operator", visitorOf(r).who), slog.String("store", at.store), slog.String("id", at.id.String()))
		if err := s.config.Log.Handler().Handle(r.Context(), line); err != nil {
			s.fail(w, r, http.StatusInternalServerError, "The log could not be written. Nothing was shown.")
			return
		}
	}
	view.Doubt = doubt(&record, s.config.Guards)
	p.Heading, p.View = "Record "+at.id.Short(), view
	s.show(w, r, status, "record", p)
}
