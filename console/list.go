package console

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

const (
	listShown = 50                     // records of a page
	textLimit = 200                    // records that a filtered page reads at once; it may show up to 249
	listLook  = 600 * time.Millisecond // after which a page is shown even if it is not full
	smallBody = 64 << 10               // the largest response whose status a listing reads, in bytes
)

// states are the choices of the filter, besides stuckState.
var states = []store.RecordState{store.StateLapsed, store.StateUnknown, store.StateUnreadable, store.StateRunning, store.StateCompleted, store.StateExpired}

// stuckState is the choice of the records that need a person.
const stuckState = "stuck"

// row is a record of a listing.
type row struct {
	store.Record

	Status int  // of its response; 0: none, or not read
	Failed bool // it keeps a failure
}

// Choices are the decisions about the record that its page offers.
func (r row) Choices() operate.Choices { return operate.ChoicesOf(r.State) }

// newRow returns a record with the status of its response, as far as it was read.
func newRow(r *store.Record) row {
	answer, _ := operate.AnswerOf(r)
	found := row{Record: *r, Status: answer.Response.Status, Failed: answer.Failed}
	found.Payload = nil // a page of many does not hold their responses
	return found
}

func rows(records []store.Record) []row {
	list := make([]row, len(records))
	for i := range records {
		list[i].Record = records[i]
	}
	return list
}

// listView is a listing.
type listView struct {
	Store   string
	State   string
	States  []store.RecordState
	Label   string
	Text    string
	Older   string
	Rows    []row
	Scanned int
	Total   int64
	First   bool // it starts at the beginning
	All     bool // every record is selected
	Start   template.URL
	Next    template.URL // query of the next page
	Select  template.URL // query of this page with every record selected
}

// query returns the query of a page of the same listing, with one more parameter.
func (v *listView) query(name, value string) template.URL {
	q := url.Values{"store": {v.Store}}
	for name, value := range map[string]string{"state": v.State, "label": v.Label, "text": v.Text, "older": v.Older, name: value} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return template.URL(q.Encode()) //nolint:gosec // every value in it is escaped
}

// filters reports whether the page leaves out records that the store lists.
func (v *listView) filters() bool { return v.Text != "" || v.State == stuckState }

// selects reports whether the text of the filter is in a record's description, reason or
// ID.
func (v *listView) selects(r *store.Record) bool {
	text := strings.ToLower(v.Text)
	return strings.HasPrefix(r.ID.String(), text) || strings.Contains(strings.ToLower(r.Description), text) ||
		strings.Contains(strings.ToLower(r.Reason), text)
}

func (s *site) list(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	view := listView{
		Store: form.Get("store"), State: form.Get("state"), States: states, Label: form.Get("label"), Older: form.Get("older"),
		Text: strings.TrimSpace(form.Get("text")), First: form.Get("after") == "", All: form.Has("all"),
	}
	if view.Store == "" {
		view.Store = s.stores[0].Name
	}
	inspector, ok := s.inspector(view.Store)
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The console has no store of this name.")
		return
	}
	q, problem := view.parse(form.Get("after"))
	if problem != "" {
		s.fail(w, r, http.StatusBadRequest, problem)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	began := time.Now()
	next, err := scan(ctx, inspector, q, listLook, func(page store.Page) (limit int) {
		for _, found := range rows(page.Records) {
			if view.selects(&found.Record) && (view.State != stuckState || s.needsHuman(&found.Record)) {
				view.Rows = append(view.Rows, found)
			}
		}
		view.Scanned += page.Scanned
		view.Total = max(view.Total, page.Total)
		if limit = listShown - len(view.Rows); limit > 0 && view.filters() {
			limit = textLimit
		}
		return limit
	})
	if err == nil {
		err = readStatus(ctx, inspector, view.Rows, began.Add(2*listLook))
	}
	if err != nil {
		status, message := storeFailure(err)
		s.fail(w, r, status, message)
		return
	}
	view.Start, view.Select = view.query("", ""), view.query("all", "1")
	if !view.First {
		view.Select += template.URL("&after=" + url.QueryEscape(form.Get("after"))) //nolint:gosec // it is escaped
	}
	if next != "" {
		view.Next = view.query("after", next)
	}
	notice := ""
	if form.Has("forgotten") {
		notice = "The record was forgotten. The next request with its key runs."
	}
	s.show(w, r, http.StatusOK, "list", page{Heading: "Records", Notice: notice, Live: true, View: view})
}

// parse returns the query of a listing, or a sentence that says which field is invalid.
func (v *listView) parse(after string) (q store.Query, problem string) {
	if q = (store.Query{Label: v.Label, After: after, Limit: listShown}); v.filters() {
		q.Limit = textLimit
	}
	switch state, ok := operate.StateNamed(v.State); {
	case v.State == stuckState:
		q.States = operate.MayNeedPerson
	case ok:
		q.States = store.States(state)
	case v.State != "":
		return q, "The state is none of stuck, lapsed, unknown, unreadable, running, completed and expired."
	}
	if v.Older != "" {
		d, err := time.ParseDuration(v.Older)
		if err != nil || d < 0 {
			return q, `The age is not a duration such as "5m" or "36h".`
		}
		q.OlderThan = d
	}
	return q, ""
}

// scan reads pages of a listing for a time, or until use returns no limit for the next
// page. It returns the cursor behind the pages read, empty at the end.
func scan(ctx context.Context, inspector store.Inspector, q store.Query, during time.Duration, use func(store.Page) (limit int)) (string, error) {
	for began := time.Now(); ; {
		page, err := inspector.List(ctx, q)
		if err != nil {
			return "", err
		}
		q.After, q.Limit = page.Next, use(page)
		if q.After == "" || q.Limit <= 0 || time.Since(began) > during {
			return q.After, nil
		}
	}
}

// readStatus reads the statuses of the small responses among those that the records keep.
// It stops at until.
func readStatus(ctx context.Context, inspector store.Inspector, list []row, until time.Time) error {
	for i := range list {
		r := &list[i]
		if r.State != store.StateCompleted || r.Size > smallBody || time.Now().After(until) {
			continue
		}
		record, err := inspector.Inspect(ctx, r.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // it ended meanwhile
		}
		if err != nil {
			return err
		}
		*r = newRow(&record)
	}
	return nil
}
