package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// recordView is the page of a record.
type recordView struct {
	Store    string
	Record   store.Record
	Known    bool        // this process has the policy of the record
	Next     string      // the client's next response
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
	switch a := v.Answer; {
	case a == nil:
		return ""
	case a.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("a failure is kept: %d", a.Status)
	case a.Corrupt:
		return "the answer cannot be read"
	default:
		return ""
	}
}

// record shows one record.
func (s *site) record(w http.ResponseWriter, r *http.Request) {
	store, inspector, id, ok := s.place(w, r)
	if !ok {
		return
	}
	notice := ""
	if r.URL.Query().Get("done") == "answered" {
		notice = "The answer was recorded. The next retry with this key gets it."
	}
	s.showRecord(w, r, http.StatusOK, store, inspector, id, page{Notice: notice}, resolveForm{})
}

// change makes the change of a form on a record's page, or reveals its response.
func (s *site) change(w http.ResponseWriter, r *http.Request) {
	store, inspector, id, ok := s.place(w, r)
	if !ok {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusRequestEntityTooLarge, "The form could not be read, or has more than "+byteCount(maxForm)+". Nothing was changed.")
		return
	}
	form := readForm(r)
	switch {
	case form.Action == actionReveal && !may(r, Reveal):
		s.fail(w, r, http.StatusForbidden, "You may not see responses. Nothing was shown.")
	case form.Action == actionReveal:
		s.showRecord(w, r, http.StatusOK, store, inspector, id, page{}, form)
	case !may(r, Resolve):
		s.fail(w, r, http.StatusForbidden, "This console is read-only for you. Nothing was changed.")
	default:
		s.resolve(w, r, store, inspector, id, form)
	}
}

// place returns the store and the ID of a request's path, or shows why there are none.
func (s *site) place(w http.ResponseWriter, r *http.Request) (st string, inspector store.Inspector, id store.ID, ok bool) {
	st = r.PathValue("store")
	inspector, ok = s.inspector(st)
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return st, nil, id, false
	}
	id, err := store.ParseID(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, http.StatusNotFound, "An ID has 64 hexadecimal digits.")
		return st, nil, id, false
	}
	return st, inspector, id, true
}

// showRecord shows the page of a record, with a notice, and with a form as it was typed.
func (s *site) showRecord(
	w http.ResponseWriter, r *http.Request, status int, st string, inspector store.Inspector, id store.ID, p page, form resolveForm,
) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	record, err := inspector.Inspect(ctx, id)
	if err != nil {
		failure, message := storeFailure(err)
		if p.Notice != "" {
			message = p.Notice + " " + message
		}
		s.fail(w, r, max(status, failure), message)
		return
	}
	policy := s.policy(record.Label)
	view := &recordView{
		Store: st, Record: record, Known: policy != nil, Next: nextAnswer(&record, policy), Form: form,
		Events: s.config.Events.of(id), Recorded: s.config.Events != nil,
		Reveal: form.Action == actionReveal, Call: r.URL.Query().Get("call"),
	}
	if record.State == store.StateCompleted {
		view.Answer = showAnswer(record.Payload)
	}
	if view.Answer != nil && view.Reveal {
		line := slog.NewRecord(time.Now(), slog.LevelWarn, "console: revealing a response", 0)
		line.AddAttrs(slog.String("operator", visitorOf(r).who), slog.String("store", st), slog.String("id", id.String()))
		if err := s.config.Log.Handler().Handle(r.Context(), line); err != nil {
			s.fail(w, r, http.StatusInternalServerError, "The log could not be written. Nothing was shown.")
			return
		}
	}
	p.Heading, p.View = "Record "+id.Short(), view
	s.show(w, r, status, "record", p)
}

// nextAnswer describes the response to the client's next retry. A nil policy is not of
// this process.
func nextAnswer(record *store.Record, policy *protocol.Config) string {
	switch record.State {
	case store.StateCompleted:
		if reprise.DescribeResult(record.Payload) != "" {
			return "The result, through reprise.Do. A different operation with this key gets the outcome mismatch."
		}
		mark := "as a replay"
		if policy != nil {
			mark = policy.ControlFields().Replayed + ": true"
		}
		return "The stored answer, marked " + mark + ". A different request with this key gets 422 key-reused."
	case store.StateRunning:
		return "409 in-progress, until the attempt ends."
	case store.StateExpired:
		return "409 result-expired, until the record ends. A different request with this key gets 422 key-reused."
	case store.StateUnknown:
		return "409 outcome-unknown, until the record is resolved or ends."
	case store.StateUnreadable:
		return "500 record-corrupt, until the record is forgotten or its retention ends."
	case store.StateLapsed:
		switch {
		case record.AtMostOnce:
			return "409 outcome-unknown, until the record is resolved or ends."
		case policy == nil:
			return fmt.Sprintf("A retry runs the operation again, as attempt %d, unless its policy, which this process does not have, allows no more attempts.", record.Attempt+1)
		case policy.MaxAttempts > 0 && record.Attempt >= policy.MaxAttempts:
			return fmt.Sprintf("409 outcome-unknown: the policy allows %d attempts, and this was number %d.", policy.MaxAttempts, record.Attempt)
		default:
			return fmt.Sprintf("A retry runs the operation again, as attempt %d.", record.Attempt+1)
		}
	default:
		return ""
	}
}
