package console

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// shownBody is how much of a body a page shows, in bytes.
const shownBody = 64 << 10

// answerView is a stored response.
type answerView struct {
	Problem string // why it cannot be read
	Sealed  bool   // only the client's key opens it
	Result  bool   // it is of job.Do, and not an HTTP response
	Status  int
	Header  []protocol.Field
	Trailer []protocol.Field
	Size    int
	Body    string // as text, or as a dump
	Binary  bool
	Cut     bool // the body is longer than the part shown

	Elsewhere bool // the body is in a blob store
	Corrupt   bool // it is not in a form that this release knows
}

// showAnswer shows the answer of a record with a payload of a size.
func showAnswer(a *operate.Answer, size int) *answerView {
	answer, err := a.Response, a.Err
	view := &answerView{
		Status: answer.Status, Header: slices.Collect(answer.Header.All()), Trailer: slices.Collect(answer.Trailer.All()), Size: len(answer.Body),
	}
	var elsewhere *operate.OffloadedError
	switch {
	case a.Result != "":
		view.Problem, view.Result = "Not an HTTP answer: a result of job.Do, "+a.Result+".", true
		view.Size, view.Corrupt = size, errors.Is(err, store.ErrCorrupt)
	case errors.Is(err, operate.ErrBodyOmitted):
		view.Problem = "The body was not kept."
	case errors.As(err, &elsewhere):
		view.Problem, view.Elsewhere, view.Size = "The body is in the blob store, as "+elsewhere.Blob.Name()+".", true, int(answer.Length)
	case errors.Is(err, operate.ErrSealed):
		view.Problem, view.Sealed = "The answer is sealed: only a request with the client's key opens it.", true
	case errors.Is(err, operate.ErrResultUnavailable):
		view.Problem = "The response was cut short, or a part of it cannot be kept."
	case err != nil:
		return &answerView{Problem: "The stored answer cannot be read: " + err.Error() + ".", Size: size, Corrupt: true}
	}
	if view.Problem != "" {
		return view
	}
	body := answer.Body
	if view.Cut = len(body) > shownBody; view.Cut {
		body = body[:shownBody]
	}
	if text := string(body); isText(text, view.Cut) {
		view.Body = strings.ToValidUTF8(text, "") // a rune may have been cut at the end
	} else {
		view.Body, view.Binary = hex.Dump(body[:min(len(body), shownBody/4)]), true
		view.Cut = len(answer.Body) > shownBody/4
	}
	return view
}

// isText reports whether a body reads as text: UTF-8 without control characters other
// than white space. The last rune of one that was cut may be incomplete.
func isText(text string, cut bool) bool {
	if cut {
		for range utf8.UTFMax - 1 {
			if r, size := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && size == 1 {
				text = text[:len(text)-1]
			}
		}
	}
	control := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
	}
	return utf8.ValidString(text) && !strings.ContainsFunc(text, control)
}
