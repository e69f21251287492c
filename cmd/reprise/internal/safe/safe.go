// Package safe makes untrusted text harmless to a terminal: the contents of records, the
// replies of servers, the input of clients.
//
// A terminal obeys control characters: with them, a response body could move the cursor,
// rewrite earlier output, change the title or paste into the clipboard. Characters that
// reverse the direction of text or take no room make one text look like another.
// [Writer], [Field] and [JSON] let visible characters through, and write all others as an
// escape such as \x1b or \u202e.
package safe

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may follow each other. More of them would cover
// the lines above and below.
const maxMarks = 4

const hexDigits = "0123456789abcdef"

// Field returns s on one line: line ends and tabs are escaped like every other control
// character.
func Field(s string) string {
	var e escaper
	return string(e.append(nil, []byte(s), true))
}

// Text returns s with its line ends and tabs, and everything else that cannot be seen
// escaped.
func Text(s string) string {
	e := escaper{lines: true}
	return string(e.append(nil, []byte(s), true))
}

// Fold returns s on one line, for errors that other packages write on several: an empty
// line ends a sentence, and other line ends separate the parts of a list.
func Fold(s string) string {
	var folded strings.Builder
	separator := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		switch {
		case line != "":
			folded.WriteString(separator + line)
			separator = "; "
			if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "?") {
				separator = " " // the list begins
			}
		case separator != "":
			separator = ". "
		}
	}
	return folded.String()
}

// escaper escapes a text that comes in pieces.
type escaper struct {
	lines bool // line ends and tabs stay

	marks   int               // combining marks in a row
	partial [utf8.UTFMax]byte // the beginning of a character whose end is in the next piece
	held    int
}

// append appends the escaped form of p to dst. Unless it is the last piece, an incomplete
// character at its end waits for the next one.
func (e *escaper) append(dst, p []byte, last bool) []byte {
	if e.held > 0 {
		p = append(e.partial[:e.held:e.held], p...)
		e.held = 0
	}
	if !last {
		if n := incomplete(p); n > 0 {
			e.held = copy(e.partial[:], p[len(p)-n:])
			p = p[:len(p)-n]
		}
	}
	return e.appendWhole(dst, p)
}

// incomplete returns how many bytes at the end of p may be the beginning of a character.
func incomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		tail := p[len(p)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// appendWhole appends the escaped form of p, which ends with a whole character.
func (e *escaper) appendWhole(dst, p []byte) []byte {
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		raw := p[:size]
		p = p[size:]
		switch {
		case r == utf8.RuneError && size <= 1:
			e.marks = 0
			dst = append(dst, '\\', 'x', hexDigits[raw[0]>>4], hexDigits[raw[0]&15])
		case e.lines && (r == '\n' || r == '\t'):
			e.marks = 0
			dst = append(dst, raw...)
		case e.visible(r):
			dst = append(dst, raw...)
		default:
			dst = appendEscape(dst, r)
		}
	}
	return dst
}

// visible reports whether r may be written as it is, and counts combining marks.
func (e *escaper) visible(r rune) bool {
	if r < utf8.RuneSelf {
		e.marks = 0
		return r >= ' ' && r <= '~'
	}
	if unicode.Is(unicode.M, r) {
		e.marks++
		return e.marks <= maxMarks
	}
	e.marks = 0
	return visible(r)
}

// blank are the characters that count as letters or symbols but are invisible.
var blank = []rune{0x115f, 0x1160, 0x2800, 0x3164, 0xffa0, 0x1d159, 0xfffc}

// visible reports whether a character beyond ASCII has a glyph, takes the room that its
// width says, and leaves the direction of the text alone. Hebrew and Arabic letters run
// from right to left: they are escaped, so that a record cannot reorder the line that it
// is shown in.
func visible(r rune) bool {
	if !unicode.IsPrint(r) || rightToLeft(r) {
		return false
	}
	return !slices.Contains(blank, r)
}

// rightToLeft reports whether r is in one of the blocks that Unicode reserves for scripts
// that are written from right to left.
func rightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// appendEscape appends the escape of a character: \n, \x1b, \u202e or \U000e0001.
func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	kind, digits := byte('x'), 2
	switch {
	case r > 0xffff:
		kind, digits = 'U', 8
	case r > 0xff:
		kind, digits = 'u', 4
	case r > 0x7f: // \x80 is the byte, \u0080 the character
		kind, digits = 'u', 4
	}
	dst = append(dst, '\\', kind)
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, hexDigits[r>>(4*i)&15])
	}
	return dst
}

// Clean reports whether [Text] leaves s unchanged.
func Clean(s string) bool { return strings.Compare(Text(s), s) == 0 }
