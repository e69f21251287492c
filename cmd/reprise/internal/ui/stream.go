// Package ui is the dialogue of the program with a person: streams that escape control
// characters, optional colour, tables, progress and questions.
package ui

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// Style is the meaning of a piece of text.
type Style uint8

// The styles. Without colour they all look the same, so none of them says anything that
// the text does not.
const (
	Plain Style = iota
	Good
	Warn
	Bad
	Strong
	Faint
)

// Piece is text in a style.
type Piece struct {
	Style Style
	Text  string
}

// Paint returns text in a style, on one line.
func Paint(style Style, format string, args ...any) Piece {
	return Piece{Style: style, Text: fmt.Sprintf(format, args...)}
}

// Stream writes for a person, to a terminal or elsewhere. Everything that is written to
// it passes a [safe.Writer]; only the stream itself writes colour and moves the cursor.
type Stream struct {
	raw      *sink
	text     *safe.Writer
	terminal *os.File // nil: not a terminal
	moves    bool     // it is a terminal whose cursor moves
	styles   Styles
}

// sink remembers the first error of a writer, which then gets nothing more.
type sink struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (s *sink) Write(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.w.Write(p)
	}
	return n, s.err
}

// NewStream returns a stream to w. It has colour if w is a terminal that has some, and
// NO_COLOR is empty.
func NewStream(w io.Writer, getenv func(string) string) *Stream {
	raw := &sink{w: w}
	s := &Stream{raw: raw, text: safe.NewWriter(raw)}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.terminal = f
	}
	s.moves = s.terminal != nil && getenv("TERM") != "dumb"
	s.styles = NewStyles(s.moves && getenv("NO_COLOR") == "")
	return s
}

// Plain turns colour off.
func (s *Stream) Plain() { s.styles = NewStyles(false) }

// Err returns the first error of the writer below.
func (s *Stream) Err() error { return s.raw.err }

// Write writes text.
func (s *Stream) Write(p []byte) (int, error) { return s.text.Write(p) }

// Raw returns the writer below, for binary output and for writers that escape it.
func (s *Stream) Raw() io.Writer { return s.raw }

// Width returns the number of columns of the terminal, and 0 if it is not a terminal.
func (s *Stream) Width() int {
	if s.terminal == nil {
		return 0
	}
	width, _, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Line writes strings and [Piece] values as one line.
func (s *Stream) Line(pieces ...any) {
	for _, p := range pieces {
		s.piece(p)
	}
	_, _ = io.WriteString(s.raw, "\n")
}

func (s *Stream) piece(p any) {
	switch p := p.(type) {
	case Piece:
		_, _ = io.WriteString(s.raw, s.styles.Render(p))
	case string:
		_, _ = io.WriteString(s.raw, safe.Field(p))
	default:
		_, _ = io.WriteString(s.raw, safe.Field(fmt.Sprint(p)))
	}
}

// Styles renders pieces.
type Styles struct{ colour bool }

// NewStyles returns the styles, with colour or without. The colours are those that a
// person chose for the terminal.
func NewStyles(colour bool) Styles { return Styles{colour} }

// sgr are the parameters of the escape sequences that begin the styles.
var sgr = [...]string{Good: "32", Warn: "33", Bad: "1;31", Strong: "1", Faint: "2"}

// Render returns the harmless form of a piece in its style, on one line.
func (s *Styles) Render(p Piece) string {
	text := safe.Field(p.Text)
	if !s.colour || p.Style == Plain || text == "" {
		return text
	}
	return "\x1b[" + sgr[p.Style] + "m" + text + "\x1b[0m"
}
