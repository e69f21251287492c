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
	switch {
	case a.Result != "":
		return &answerView{
			Problem: "Not an HTTP answer: a result of job.Do, " + a.Result + ".",
			Result:  true, Size: size, Corrupt: errors.Is(err, store.ErrCorrupt),
		}
	case errors.Is(err, operate.ErrBodyOmitted):
		return &answerView{Problem: "The body was not kept.", Status: answer.Status}
	case errors.As(err, new(*operate.OffloadedError)):
		var elsewhere *operate.OffloadedError
		errors.As(err, &elsewhere)
		return &answerView{
			Problem:   "The body is in the blob store, as " + elsewhere.Blob.Name() + ".",
			Elsewhere: true, Status: answer.Status, Header: slices.Collect(answer.Header.All()), Size: int(answer.Length),
		}
	case errors.Is(err, operate.ErrSealed):
		return &answerView{
			Problem: "The answer is sealed: only a request with the client's key opens it.",
			Sealed:  true, Status: answer.Status, Header: slices.Collect(answer.Header.All()), Trailer: slices.Collect(answer.Trailer.All()),
		}
	case errors.Is(err, operate.ErrResultUnavailable):
		return &answerView{Problem: "The response was cut short, or a part of it cannot be kept.", Status: answer.Status}
	case err != nil:
		return &answerView{Problem: "The stored answer cannot be read: " + err.Error() + ".", Size: size, Corrupt: true}
	}
	view := &answerView{Status: answer.Status, Size: len(answer.Body)}
	for f := range answer.Header.All() {
		view.Header = append(view.Header, f)
	}
	for f := range answer.Trailer.All() {
		view.Trailer = append(view.Trailer, f)
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
