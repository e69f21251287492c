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
	"github.com/reprise-go/reprise/core/store"
)

// maxForm bounds a form in bytes: a response and its surroundings.
const maxForm = 2 << 20

// The actions of the form.
const (
	actionAnswer = "answer"
	actionForget = "forget"
)

// resolveForm is the input of an operator.
type resolveForm struct {
	Action, Fence, Confirm, Reason              string
	Status, ContentType, Header, Body, Retained string
}

func readForm(r *http.Request) resolveForm {
	get := r.PostForm.Get
	return resolveForm{
		Action: get("action"), Fence: get("fence"), Confirm: strings.TrimSpace(get("confirm")), Reason: strings.TrimSpace(get("reason")),
		Status: strings.TrimSpace(get("status")), ContentType: strings.TrimSpace(get("content-type")), Header: get("header"),
		// a browser sends all line ends as CRLF
		Body: strings.ReplaceAll(get("body"), "\r\n", "\n"), Retained: strings.TrimSpace(get("retention")),
	}
}

// resolve ends a lapsed record, or forgets one that is unreadable, as an operator typed
// it. It is fenced: a record that has changed since it was shown stays as it is.
func (s *site) resolve(w http.ResponseWriter, r *http.Request) {
	if !s.may(r) {
		s.fail(w, r, http.StatusForbidden, "This console is read-only for you. Nothing was changed.")
		return
	}
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
	resolution, problem := form.resolution(id)
	if problem != "" {
		s.showRecord(w, r, http.StatusUnprocessableEntity, store, inspector, id, page{Notice: problem + " Nothing was changed.", Failed: true}, form)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := inspector.Resolve(ctx, id, resolution)
	s.audit(r, store, id, &form, err)
	s.report(r.Context(), store, id, &form, err)
	if err != nil {
		status, message := storeFailure(err)
		s.showRecord(w, r, status, store, inspector, id, page{Notice: message, Failed: true}, form)
		return
	}
	if resolution.Forget {
		redirect(w, "../../records?store="+store+"&state=lapsed&forgotten="+id.Short())
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
	switch f.Action {
	case actionForget:
		resolution.Forget = true
		return resolution, ""
	case actionAnswer:
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
	if resolution.Payload, err = protocol.EncodeResponse(answer); err != nil {
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
func (s *site) report(ctx context.Context, store string, id store.ID, form *resolveForm, err error) {
	if err != nil {
		return
	}
	for _, engine := range s.config.Engines {
		if engine.Name == store {
			engine.Engine.Report(ctx, reprise.Event{Kind: reprise.EventResolved, ID: id, Reason: form.Reason})
		}
	}
}

// named reports whether one of fields is called name, in any case.
func named(fields []protocol.Field, name string) bool {
	return slices.ContainsFunc(fields, func(f protocol.Field) bool { return strings.EqualFold(f.Name, strings.TrimSpace(name)) })
}

// audit logs who resolved a record, and why. It logs no part of the response.
func (s *site) audit(r *http.Request, store string, id store.ID, form *resolveForm, err error) {
	message, attributes := "console: a record was resolved", []slog.Attr{
		slog.String("operator", s.config.Operator(r)), slog.String("store", store), slog.String("id", id.String()),
		slog.String("fence", form.Fence), slog.String("action", form.Action), slog.String("reason", form.Reason),
	}
	if err != nil {
		message, attributes = "console: a record was not resolved", append(attributes, slog.String("error", err.Error()))
	}
	s.config.Log.LogAttrs(r.Context(), slog.LevelWarn, message, attributes...)
}
