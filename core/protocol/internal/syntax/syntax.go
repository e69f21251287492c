// Package syntax has the rules of RFC 9110 and RFC 9651 for the bytes of names, values
// and keys that the protocol and the codec of its records share.
package syntax

import "strings"

// HasLineBytes reports whether value has CR, LF or NUL. Looking for each of them alone is
// several times as fast as looking for all at once.
func HasLineBytes(value string) bool {
	return strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, 0) >= 0
}

// ValidField reports whether a field can be sent: its name is a token of RFC 9110,
// section 5.6.2, and its value has no CR, LF or NUL, which could end its line and start
// another.
func ValidField(name, value string) bool {
	return !HasLineBytes(value) && ValidName(name)
}

// ValidName reports whether name is a token of RFC 9110, section 5.6.2.
func ValidName(name string) bool { return name != "" && tokenBytes.HaveAll(name) }

// ByteSet is a set of bytes. It is a table because every byte of a key and of a kept
// field is looked up.
type ByteSet [256]bool

// tokenBytes is the set of the bytes of a token.
var tokenBytes = NewByteSet("!#$%&'*+-.^_`|~")

// NewByteSet returns the set of the letters and digits of US-ASCII and the bytes of
// others.
func NewByteSet(others string) *ByteSet {
	const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	s := new(ByteSet)
	for _, c := range []byte(lettersAndDigits + others) {
		s[c] = true
	}
	return s
}

// HaveAll reports whether every byte of text is in the set.
func (s *ByteSet) HaveAll(text string) bool {
	for i := range len(text) {
		if !s[text[i]] {
			return false
		}
	}
	return true
}

// TrimSpace removes the optional white space of RFC 9110: spaces and tabs.
func TrimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// AppendLower appends s with its ASCII letters in lower case.
func AppendLower(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}

// Printable reports whether text is printable US-ASCII only.
func Printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// AllowsBody reports whether a response of this status may have a body (RFC 9110, section
// 6.4.1).
func AllowsBody(status int) bool { return status >= 200 && status != 204 && status != 304 }
