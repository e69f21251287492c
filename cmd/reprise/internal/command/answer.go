package command

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// maxShownBody is how much of a body a terminal gets. The JSON form has all of it.
const maxShownBody = 64 << 10

// answerOf returns the result that a record keeps; nil means that it has none, or is of a
// listing.
func answerOf(r *store.Record) *operate.Answer {
	if a, ok := operate.AnswerOf(r); ok {
		return &a
	}
	return nil
}

// statusText names a status: "201 Created".
func statusText(status int) string {
	text := strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	return text
}

// nextFor describes the response to the client's next request with the key.
func nextFor(r *store.Record) string { return operate.NextOf(r).Text }

// fieldJSON is a field of a response in the output for programs.
type fieldJSON struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Add    bool   `json:"add,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

// answerJSON is a response in the output for programs.
type answerJSON struct {
	Status   int         `json:"status,omitempty"`
	Header   []fieldJSON `json:"header"`
	Trailer  []fieldJSON `json:"trailer,omitempty"`
	BodySize int64       `json:"body_size"`
	Blob     string      `json:"blob,omitempty"`        // the name of the body in the blob store
	Body     *string     `json:"body,omitempty"`        // if it is text and asked for
	Bytes    *string     `json:"body_base64,omitempty"` // if it is asked for
	Sealed   bool        `json:"sealed,omitempty"`      // only the client's key opens it
	Problem  string      `json:"problem,omitempty"`     // why it is not a whole response
}

func newAnswerJSON(a *operate.Answer, reveal bool) *answerJSON {
	if a == nil {
		return nil
	}
	out := &answerJSON{
		Status: a.Response.Status, Header: fieldsJSON(a.Response.Header), Trailer: fieldsJSON(a.Response.Trailer),
		BodySize: int64(len(a.Response.Body)),
	}
	var elsewhere *operate.OffloadedError
	if errors.As(a.Err, &elsewhere) {
		out.BodySize, out.Blob = elsewhere.Blob.Size, elsewhere.Blob.Name()
	}
	if a.Err != nil {
		out.Problem, out.Sealed = a.Err.Error(), errors.Is(a.Err, operate.ErrSealed)
	}
	if reveal && a.Err == nil {
		encoded := base64.StdEncoding.EncodeToString(a.Response.Body)
		out.Bytes = &encoded
		if utf8.Valid(a.Response.Body) {
			text := string(a.Response.Body)
			out.Body = &text
		}
	}
	return out
}

func fieldsJSON(h protocol.Header) []fieldJSON {
	list := []fieldJSON{}
	for f := range h.All() {
		list = append(list, fieldJSON{Name: f.Name, Value: f.Value, Add: f.Add, Remove: f.Remove})
	}
	return list
}

// answerLines returns a response for a person: status and fields, and its body if it is
// to be revealed.
func answerLines(a *operate.Answer, reveal bool) [][]any {
	r := a.Response
	var lines [][]any
	add := func(pieces ...any) { lines = append(lines, pieces) }
	if r.Status != 0 {
		add("HTTP ", ui.Piece{Style: ui.Strong, Text: statusText(r.Status)})
	}
	for _, part := range []struct {
		header protocol.Header
		note   string
	}{{r.Header, ""}, {r.Trailer, " (trailer)"}} {
		for f := range part.header.All() {
			switch {
			case f.Remove:
				add(f.Name, ui.Paint(ui.Faint, ": removed%s", part.note))
			default:
				add(f.Name, ": ", f.Value, ui.Paint(ui.Faint, "%s", part.note))
			}
		}
	}
	if a.Err != nil {
		add(ui.Piece{Style: ui.Warn, Text: a.Err.Error()})
		return lines
	}
	switch {
	case len(r.Body) == 0:
		add(ui.Piece{Style: ui.Faint, Text: "no body"})
	case !reveal:
		add(ui.Paint(ui.Faint, "a body of %s; --reveal prints it", ui.Bytes(int64(len(r.Body)))))
	}
	return lines
}

// printAnswer prints a response for a person.
func (c *session) printAnswer(a *operate.Answer, reveal bool) {
	for _, line := range answerLines(a, reveal) {
		c.out.Line(append([]any{"  "}, line...)...)
	}
	if !reveal || a.Err != nil || len(a.Response.Body) == 0 {
		return
	}
	body := a.Response.Body
	c.out.Line()
	shown := body[:min(len(body), maxShownBody)]
	_, _ = c.out.Write([]byte(safe.Text(string(shown))))
	c.out.Line()
	if rest := len(body) - len(shown); rest > 0 {
		c.out.Line(ui.Paint(ui.Faint, "… %s more; --json prints the whole body", ui.Bytes(int64(rest))))
	}
}
