package console

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// maxForm bounds a form, which may have a whole response, in bytes.
const maxForm = 2 << 20

// The actions of the forms.
const (
	actionAnswer = "answer"
	actionForget = "forget"
	actionReveal = "reveal"
)

// resolveForm is the input of an operator. State and Fence are those of the record as the
// page showed it.
type resolveForm struct {
	Action, State, Fence, Confirm, Reason       string
	Again                                       string // set: the operation may run again
	Status, ContentType, Header, Body, Retained string
}

// readForm reads the form of a request, or shows a page that says why it cannot.
func (s *site) readForm(w http.ResponseWriter, r *http.Request, most int) bool {
	r.Body = http.MaxBytesReader(w, r.Body, int64(most))
	err := r.ParseForm()
	if err != nil {
		s.fail(w, r, http.StatusRequestEntityTooLarge, "The form could not be read, or has more than "+byteCount(most)+". Nothing was changed.")
	}
	return err == nil
}

func newResolveForm(r *http.Request) resolveForm {
	get := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	return resolveForm{
		Action: get("action"), State: get("state"), Fence: get("fence"), Again: get("again"), Confirm: get("confirm"), Reason: get("reason"),
		Status: get("status"), ContentType: get("content-type"), Header: r.PostForm.Get("header"), Body: bodyOf(r, "body"), Retained: get("retention"),
	}
}

// bodyOf returns a body as it was typed: browsers send all line ends as CRLF.
func bodyOf(r *http.Request, name string) string {
	return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n")
}

// resolve carries out the form of one record.
func (s *site) resolve(w http.ResponseWriter, r *http.Request, at place, form resolveForm) {
	decision, problem := form.decision(at.id, form.State, form.Fence, at.id.Short(), "the first 12 digits of the ID")
	if problem != "" {
		s.showRecord(w, r, http.StatusUnprocessableEntity, at, page{Notice: problem + " Nothing was changed.", Failed: true}, form)
		return
	}
	err := s.decide(r, at, decision)
	switch {
	case err != nil:
		status, message := changeFailure(err)
		s.showRecord(w, r, status, at, page{Notice: message, Failed: true}, form)
	case decision.Forget:
		redirect(w, "../../records?store="+at.store+"&state="+form.State+"&forgotten="+at.id.Short())
	default:
		redirect(w, at.id.String()+"?done=answered")
	}
}

// decide carries out a decision, which is logged first. The observer of the store's
// engine is notified of it; if the store has no engine here, the trail is.
func (s *site) decide(r *http.Request, at place, decision operate.Resolution) error {
	decision.Operator, decision.Guards = visitorOf(r).who, s.config.Guards
	if i := slices.IndexFunc(s.config.Engines, func(e Engine) bool { return e.Name == at.store }); i >= 0 {
		decision.Engine = s.config.Engines[i].Engine
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience) // a browser that leaves stops no write midway
	defer cancel()
	audit := s.config.Log.Handler().WithAttrs([]slog.Attr{slog.String("store", at.store)})
	err := operate.Resolve(ctx, at.inspector, decision, audit)
	i := slices.IndexFunc(s.stores, func(st Store) bool { return st.Name == at.store })
	// Also after an error, which may hide that it was done.
	s.surveys[i].resolved()
	if err == nil && !s.events.resolved(at.id, decision.Fence, decision.State) { // no engine reported it to the trail
		s.events.Observe(ctx, reprise.Event{
			Kind: reprise.EventResolved, ID: at.id, Fence: decision.Fence, State: decision.State,
			Forgotten: decision.Forget, Reason: decision.Reason, Operator: decision.Operator,
		})
	}
	return err
}

// decision returns the decision of the form about a record that the operator saw with
// this state and fence, or a sentence that explains why the form is invalid. The operator
// must have typed confirm, which that sentence calls named.
func (f *resolveForm) decision(id store.ID, state, fence, confirm, named string) (d operate.Resolution, problem string) {
	seen, ok := operate.StateNamed(state)
	d = operate.Resolution{ID: id, State: seen, Forget: f.Action == actionForget, RunAgain: f.Again != "", Reason: f.Reason}
	var err error
	switch d.Fence, err = strconv.ParseUint(fence, 10, 64); {
	case !strings.EqualFold(f.Confirm, confirm):
		return d, "To confirm, type " + named + "."
	case f.Reason == "":
		return d, "Give a reason, for the log."
	case err != nil:
		return d, "The form has no valid fence. Open the page of the record again."
	case !ok:
		return d, "The form has no valid state. Open the page of the record again."
	case d.Forget:
		return d, ""
	case f.Action != actionAnswer:
		return d, "The form must either record an answer or forget the record."
	}
	if f.Retained != "" {
		if d.Retention, err = time.ParseDuration(f.Retained); err != nil {
			return d, `The retention is not a duration such as "24h".`
		}
	}
	d.Answer, problem = f.answer()
	return d, problem
}

// answer returns the response of the form.
func (f *resolveForm) answer() (answer protocol.Response, problem string) {
	status, err := strconv.Atoi(f.Status)
	if err != nil {
		return answer, "The status is not a number."
	}
	var fields []protocol.Field
	if f.ContentType != "" {
		fields = append(fields, protocol.Field{Name: "Content-Type", Value: f.ContentType})
	}
	for line := range strings.Lines(f.Header) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return answer, `A header line is not of the form "Name: value".`
		}
		name = strings.TrimSpace(name)
		again := slices.ContainsFunc(fields, func(f protocol.Field) bool { return strings.EqualFold(f.Name, name) })
		fields = append(fields, protocol.Field{Name: name, Value: strings.TrimSpace(value), Add: again})
	}
	return protocol.Response{Status: status, Header: protocol.NewHeader(fields...), Body: []byte(f.Body)}, ""
}

// doubt says why retries might not get an answer that an operator records for r. It is
// empty if this process has the policy and replays the answer.
func doubt(r *store.Record, guards []*protocol.Guard) string {
	if !operate.ChoicesOf(r.State).Answer {
		return ""
	}
	sample := operate.Resolution{
		ID: r.ID, State: r.State, Fence: r.Fence, Answer: protocol.Response{Status: http.StatusOK},
		Retention: time.Hour, Reason: "none", Operator: "none", Guards: guards,
	}
	switch next, err := sample.Check(r); {
	case err != nil:
		return "No answer can be recorded here. " + sentence(err)
	case len(next.Or) > 0:
		return "This process does not have the policy of the record. With Seal.Strict, or for an operation of job.Do, " +
			"every retry would get " + strconv.Itoa(next.Or[0].Problem().Status) + " " + string(next.Or[0]) + " instead of an answer that is recorded here."
	default:
		return ""
	}
}
