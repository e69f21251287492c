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
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// maxForm bounds a form in bytes: a response and its surroundings.
const maxForm = 2 << 20

// The actions of the form.
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

func readForm(r *http.Request) resolveForm {
	get := r.PostForm.Get
	return resolveForm{
		Action: get("action"), State: get("state"), Fence: get("fence"), Again: get("again"), Confirm: strings.TrimSpace(get("confirm")), Reason: strings.TrimSpace(get("reason")),
		Status: strings.TrimSpace(get("status")), ContentType: strings.TrimSpace(get("content-type")), Header: get("header"),
		// a browser sends all line ends as CRLF
		Body: strings.ReplaceAll(get("body"), "\r\n", "\n"), Retained: strings.TrimSpace(get("retention")),
	}
}

// resolve ends a lapsed record, or forgets one that is completed or unreadable, as an
// operator typed it. It is fenced: a record that has changed since it was shown stays as
// it is. A change that cannot be logged is not made.
func (s *site) resolve(w http.ResponseWriter, r *http.Request, store string, inspector store.Inspector, id store.ID, form resolveForm) {
	resolution, problem := form.resolution(id)
	if problem != "" {
		s.showRecord(w, r, http.StatusUnprocessableEntity, store, inspector, id, page{Notice: problem + " Nothing was changed.", Failed: true}, form)
		return
	}
	if err := s.audit(r, "console: resolving a record", store, id, &form, nil); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The log could not be written. Nothing was changed.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := inspector.Resolve(ctx, id, resolution)
	outcome := "console: a record was resolved"
	if err != nil {
		outcome = "console: a record was not resolved"
	}
	_ = s.audit(r, outcome, store, id, &form, err) // the one before it is written
	s.report(r.Context(), store, id, &resolution, form.Reason, err)
	if err != nil {
		status, message := storeFailure(err)
		s.showRecord(w, r, status, store, inspector, id, page{Notice: message, Failed: true}, form)
		return
	}
	if resolution.Forget {
		redirect(w, "../../records?store="+store+"&state="+form.State+"&forgotten="+id.Short())
		return
	}
	redirect(w, id.String()+"?done=answered")
}

// resolution returns the requested resolution, or a sentence that explains why the form
// is invalid.
func (f *resolveForm) resolution(id store.ID) (resolution store.Resolution, problem string) {
	if !strings.EqualFold(f.Confirm, id.Short()) {
		return resolution, "To confirm, type the first 12 digits of the ID."
	}
	if f.Reason == "" {
		return resolution, "Say why, for the log."
	}
	fence, err := strconv.ParseUint(f.Fence, 10, 64)
	if err != nil {
		return resolution, "The form has no fence."
	}
	resolution.Fence = fence
	if resolution.State = stateNamed(f.State); resolution.State == 0 {
		return resolution, "The form has no state."
	}
	attempt := resolution.State == store.StateLapsed || resolution.State == store.StateUnknown
	switch f.Action {
	case actionForget:
		resolution.Forget = true
		if !attempt && f.Again == "" {
			return resolution, "To forget this record, agree that the operation may run again."
		}
		return resolution, ""
	case actionAnswer:
		if !attempt {
			return resolution, "A record in this state can only be forgotten."
		}
	default:
		return resolution, "The form names neither an answer nor forgetting."
	}
	if resolution.Retention, err = time.ParseDuration(f.Retained); err != nil {
		return resolution, `The retention is not a duration such as "24h".`
	}
	answer, problem := f.answer()
	if problem != "" {
		return resolution, problem
	}
	if resolution.Payload, err = stored.Encode(answer); err != nil {
		return resolution, "A replay could not serve this answer: " + err.Error() + "."
	}
	return resolution, ""
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
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return answer, `A header line is not of the form "Name: value".`
		}
		fields = append(fields, protocol.Field{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value), Add: named(fields, name)})
	}
	return protocol.Response{Status: status, Header: protocol.NewHeader(fields...), Body: []byte(f.Body)}, ""
}

// report notifies the observer of the store's engine of a resolution.
func (s *site) report(ctx context.Context, store string, id store.ID, made *store.Resolution, reason string, err error) {
	if err != nil {
		return
	}
	for _, engine := range s.config.Engines {
		if engine.Name == store {
			engine.Engine.Report(ctx, reprise.Event{
				Kind: reprise.EventResolved, ID: id, Fence: made.Fence, State: made.State, Forgotten: made.Forget, Reason: reason,
			})
		}
	}
}

// named reports whether one of fields is called name, in any case.
func named(fields []protocol.Field, name string) bool {
	return slices.ContainsFunc(fields, func(f protocol.Field) bool { return strings.EqualFold(f.Name, strings.TrimSpace(name)) })
}

// audit logs who resolves a record, and why. It logs no part of the response.
func (s *site) audit(r *http.Request, message, store string, id store.ID, form *resolveForm, err error) error {
	line := slog.NewRecord(time.Now(), slog.LevelWarn, message, 0)
	line.AddAttrs(
		slog.String("operator", visitorOf(r).who), slog.String("store", store), slog.String("id", id.String()),
		slog.String("state", form.State), slog.String("fence", form.Fence), slog.String("action", form.Action), slog.String("reason", form.Reason),
	)
	if err != nil {
		line.AddAttrs(slog.String("error", err.Error()))
	}
	return s.config.Log.Handler().Handle(r.Context(), line)
}
