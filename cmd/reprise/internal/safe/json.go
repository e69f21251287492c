package safe

import (
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns a JSON text in which every character that a terminal might obey, or that
// cannot be seen, is a \u escape: the value stays the same. In JSON such characters occur
// only in strings, and line ends only between values.
func JSON(text []byte) []byte {
	dst := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == '\n' || r >= ' ' && r <= '~' || r > '~' && (size > 1 && visible(r)) {
			dst = append(dst, text[:size]...)
		} else {
			dst = appendUnit(dst, r)
		}
		text = text[size:]
	}
	return dst
}

// appendUnit appends a character as JSON writes it: two escapes beyond the basic plane.
func appendUnit(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendUnit(appendUnit(dst, high), low)
	}
	dst = append(dst, '\\', 'u')
	for i := 3; i >= 0; i-- {
		dst = append(dst, hexDigits[r>>(4*i)&15])
	}
	return dst
}
