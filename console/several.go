package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

const (
	// maxSeveral is how many records one form resolves: all that a page of a listing shows.
	maxSeveral = listShown + textLimit - 1
	// severalTime is the time after which one form resolves no further record.
	severalTime = 20 * time.Second
)

// severalView is the page that resolves several records by one form: the records that
// were selected in a listing, then the result of each.
type severalView struct {
	Store   string
	Records []selected
	Open    int // records that the form is about
	Form    resolveForm
	Done    bool
	Changed int // records that were resolved
}

// selected is one of several records.
type selected struct {
	row

	SeenState, SeenFence string // as the listing showed it
	Next                 string // the client's next response
	Doubt                string // why an answer may not be replayed
	Body                 string // of its answer, if it differs from that of the others
	Problem              string // why it is not resolved
	Result               string // empty: not resolved
}

// Value is the record as a form names it.
func (v *selected) Value() string { return v.ID.String() + " " + v.SeenState + " " + v.SeenFence }

// BodyName is the name of the field for its body.
func (v *selected) BodyName() string { return "body-" + v.ID.String() }

// Completed reports whether one of the records can only be forgotten.
func (v *severalView) Completed() bool {
	for i := range v.Records {
		if r := &v.Records[i]; r.Problem == "" && !r.Choices().Answer {
			return true
		}
	}
	return false
}

// several shows the records that were selected, and carries out one decision about them:
// each is fenced, logged and reported as if it were alone.
func (s *site) several(w http.ResponseWriter, r *http.Request) {
	if !may(r, Resolve) {
		s.fail(w, r, http.StatusForbidden, "This console is read-only for you. Nothing was changed.")
		return
	}
	if !s.readForm(w, r, maxForm) {
		return
	}
	view := severalView{Store: r.PostForm.Get("store"), Form: newResolveForm(r)}
	inspector, ok := s.inspector(view.Store)
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return
	}
	chosen := r.PostForm["record"]
	if len(chosen) == 0 || len(chosen) > maxSeveral {
		s.fail(w, r, http.StatusUnprocessableEntity, fmt.Sprintf("Select 1 to %d records of the list. Nothing was changed.", maxSeveral))
		return
	}
	if err := view.read(r, inspector, s.config.Guards, chosen); err != nil {
		status, message := storeFailure(err)
		s.fail(w, r, status, message+" Nothing was changed.")
		return
	}
	p, status := page{Heading: "Resolve several records", View: &view}, http.StatusOK
	if view.Form.Action != "" {
		if problem := s.decideAll(r, inspector, &view); problem != "" {
			p.Notice, p.Failed, status = problem+" Nothing was changed.", true, http.StatusUnprocessableEntity
		} else {
			p.Notice, p.Failed = fmt.Sprintf("%d of %d records were resolved.", view.Changed, len(view.Records)), view.Changed < len(view.Records)
		}
	}
	s.show(w, r, status, "several", p)
}

// read reads the chosen records, and marks those that changed since they were listed.
func (v *severalView) read(r *http.Request, inspector store.Inspector, guards []*protocol.Guard, chosen []string) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for _, text := range chosen {
		parts := strings.Fields(text)
		if len(parts) != 3 {
			return fmt.Errorf("%w: the form names no record in %q", store.ErrInvalid, text)
		}
		id, err := store.ParseID(parts[0])
		if err != nil {
			return err
		}
		one := selected{SeenState: parts[1], SeenFence: parts[2]}
		one.Body = bodyOf(r, "body-"+id.String())
		one.ID = id
		record, err := inspector.Inspect(ctx, id)
		if err == nil {
			one.row = newRow(&record)
			one.Next, one.Doubt = operate.NextOf(&record, guards...).Text, doubt(&record, guards)
			if record.State.String() != one.SeenState || strconv.FormatUint(record.Fence, 10) != one.SeenFence {
				err = store.ErrRecordChanged
			}
		}
		if err != nil {
			_, one.Problem = storeFailure(err)
		} else {
			v.Open++
		}
		v.Records = append(v.Records, one)
	}
	return nil
}

// decideAll carries out the decision of the form about each record. It stops after
// severalTime, if failures took as long as the patience for one page, or if the browser
// leaves: one record may be busy, but a store that hangs must not be asked 249 times. A
// problem is one of the form, and leaves every record as it is.
func (s *site) decideAll(r *http.Request, inspector store.Inspector, v *severalView) (problem string) {
	confirm := fmt.Sprintf("%s %d", v.Form.Action, v.Open)
	decisions := make([]operate.Resolution, len(v.Records))
	for i := range v.Records {
		one, form := &v.Records[i], v.Form
		if one.Body != "" {
			form.Body = one.Body
		}
		if one.Choices().Answer {
			form.Again = "" // only the records that are completed or unreadable need it
		}
		if decisions[i], problem = form.decision(one.ID, one.SeenState, one.SeenFence, confirm, `"`+confirm+`"`); problem != "" {
			return problem
		}
	}
	v.Done = true
	began, failing := time.Now(), time.Duration(0)
	for i := range v.Records {
		one := &v.Records[i]
		if one.Problem != "" {
			continue
		}
		asked := time.Now()
		if failing >= patience || asked.Sub(began) >= severalTime || r.Context().Err() != nil {
			one.Problem = "It was not tried, because the store took too long before."
			continue
		}
		if err := s.decide(r, place{v.Store, inspector, one.ID}, decisions[i]); err != nil {
			failing += time.Since(asked)
			_, one.Problem = changeFailure(err)
			continue
		}
		v.Changed++
		if one.Result = "The answer was recorded."; decisions[i].Forget {
			one.Result = "It was forgotten: the next request with its key runs."
		}
	}
	return ""
}
