package protocol

import (
	"fmt"
	"iter"
	"strings"

	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// HeaderSection is the header section of a request as its bytes came in: the field lines
// behind the request line, with their line ends, and with or without the empty line that
// ends them. A parsed header does not tell everything of it: which lines were folded,
// which framing fields contradicted each other, which fields followed the body as
// trailers.
type HeaderSection string

// Values returns an iterator over the values of the field lines called name, in any case,
// in their order and without the white space around them.
func (s HeaderSection) Values(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := s; rest != ""; {
			var line string
			line, rest, _ = rest.cut()
			field, value, _ := strings.Cut(line, ":")
			if strings.EqualFold(field, name) && !yield(syntax.TrimSpace(value)) {
				return
			}
		}
	}
}

// Count returns the number of field lines called name, in any case.
func (s HeaderSection) Count(name string) (lines int) {
	for range s.Values(name) {
		lines++
	}
	return lines
}

// cut returns the first line without its end, the rest, and whether the end was CRLF.
func (s HeaderSection) cut() (line string, rest HeaderSection, crlf bool) {
	text, after, _ := strings.Cut(string(s), "\n")
	line, crlf = strings.CutSuffix(text, "\r")
	return line, HeaderSection(after), crlf
}

// errFraming is the error that the observer gets for a request whose section has a flaw.
var errFraming = fmt.Errorf("%w: the framing of the request is ambiguous", store.ErrInvalid)

// flaw is the reason why recipients may read a header section differently.
type flaw uint8

// The flaws, the worst last.
const (
	sound     flaw = iota
	ambiguous      // where the body ends, or a line
	malformed      // which fields there are
)

// flaw returns the worst flaw of the section (R27b; RFC 9112, sections 2.2, 5 and 6).
// http10 says that the request has HTTP/1.0, which knows no Transfer-Encoding. An empty
// section is sound.
//
//	a line that is folded, or has no colon              malformed
//	a field name with a byte that is not a token's      malformed
//	CR or NUL in a value                                malformed
//	a line that ends in LF alone                        ambiguous
//	more than one Content-Length or Transfer-Encoding   ambiguous
//	both of them, or the latter in HTTP/1.0             ambiguous
//	Content-Length that is not a number                 ambiguous
//	Transfer-Encoding other than chunked                ambiguous
func (s HeaderSection) flaw(http10 bool) flaw {
	worst, framing := sound, 0
	for s != "" {
		line, rest, crlf := s.cut()
		s = rest
		if !crlf {
			worst = ambiguous
		}
		if line == "" {
			continue
		}
		name, value, there := strings.Cut(line, ":")
		if !there || !syntax.ValidName(name) || syntax.HasLineBytes(value) {
			return malformed
		}
		switch value = syntax.TrimSpace(value); {
		case strings.EqualFold(name, "Content-Length"):
			framing++
			if !isNumber(value) {
				worst = ambiguous
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			framing++
			if http10 || !strings.EqualFold(value, "chunked") {
				worst = ambiguous
			}
		}
	}
	if framing > 1 {
		worst = ambiguous
	}
	return worst
}

// closing makes a refusal close the connection, if its request has a flaw: the next bytes
// on the connection may be a part of it.
func (f flaw) closing(a Admission) Admission {
	if f != sound {
		a.Response.Header = a.Response.Header.with(Field{Name: "Connection", Value: "close"})
	}
	return a
}

// isNumber reports whether s is a number of decimal digits.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
