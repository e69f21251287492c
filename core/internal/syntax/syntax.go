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
func ValidName[S string | []byte](name S) bool {
	for i := range len(name) {
		if !tokenBytes[name[i]] {
			return false
		}
	}
	return len(name) > 0
}

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
func TrimSpace[S string | []byte](s S) S {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// AppendLower appends s with its ASCII letters in lower case.
func AppendLower[S string | []byte](b []byte, s S) []byte {
	for i := range len(s) {
		b = append(b, Lower(s[i]))
	}
	return b
}

// Lower returns a byte, an ASCII letter in lower case.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// MediaType returns the media type of a Content-Type without its parameters, as it is
// written.
func MediaType[S string | []byte](line S) S {
	media, _ := cutByte(line, ';')
	return TrimSpace(media)
}

// CutParameter cuts the first parameter off a list such as `name="a"; filename=b`, as it
// stands behind the first semicolon of a field. A quoted value is without its quotes, and
// its escapes stay; another one may have any bytes that every reader takes for a part of
// it, such as the "=" in many boundaries. more says that a semicolon and another
// parameter follow; ok is false for a malformed one.
func CutParameter[S string | []byte](list S) (name, value, rest S, more, ok bool) {
	name, list = cutByte(list, '=')
	name, list = TrimSpace(name), TrimSpace(list)
	if !ValidName(name) || len(list) == 0 {
		return name, value, list, false, false
	}
	if list[0] == '"' {
		end := 1
		for ; end < len(list) && list[end] != '"'; end++ {
			if list[end] == '\\' {
				end++
			}
		}
		if end >= len(list) {
			return name, value, list, false, false
		}
		value, list = list[1:end], TrimSpace(list[end+1:])
		if len(list) > 0 && list[0] != ';' {
			return name, value, list, false, false
		}
		ok = true
	} else {
		end := indexByte(list, ';')
		value, list = TrimSpace(list[:end]), list[end:]
		ok = isBare(value)
	}
	if len(list) > 0 {
		return name, value, list[1:], true, ok
	}
	return name, value, list, false, ok
}

// isBare reports whether the value of a parameter needs no quotes.
func isBare[S string | []byte](value S) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\' {
			return false
		}
	}
	return len(value) > 0
}

// indexByte returns where c is in s, and the length of s if it is not.
func indexByte[S string | []byte](s S, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return len(s)
}

// cutByte cuts s around the first c.
func cutByte[S string | []byte](s S, c byte) (before, after S) {
	i := indexByte(s, c)
	return s[:i], s[min(i+1, len(s)):]
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
