package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPointer bounds the text of a pointer, in bytes.
const maxPointer = 1024

// Pointer is a JSON pointer (RFC 6901) to a part of a value: its reference tokens,
// decoded.
type Pointer []string

// ParsePointer reads a pointer such as /order/id, in which ~1 stands for a slash and ~0
// for a tilde. The pointer to the whole value is refused.
func ParsePointer(text string) (Pointer, error) {
	switch {
	case !strings.HasPrefix(text, "/"):
		return nil, fmt.Errorf("%q is not a JSON pointer (RFC 6901) to a member: it does not begin with a slash", text)
	case len(text) > maxPointer || strings.Count(text, "/") > MaxDepth:
		return nil, fmt.Errorf("a JSON pointer of %d bytes and %d levels is longer than %d, or deeper than %d", len(text), strings.Count(text, "/"), maxPointer, MaxDepth)
	case !utf8.ValidString(text):
		return nil, fmt.Errorf("%q is not a JSON pointer (RFC 6901): it is not UTF-8", text)
	}
	p := Pointer(strings.Split(text[1:], "/"))
	for i, token := range p {
		for rest := token; rest != ""; {
			var found bool
			_, rest, found = strings.Cut(rest, "~")
			if found && !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "1") {
				return nil, fmt.Errorf("%q is not a JSON pointer (RFC 6901): write ~0 for a tilde", text)
			}
		}
		p[i] = unescape.Replace(token)
	}
	return p, nil
}

var unescape = strings.NewReplacer("~0", "~", "~1", "/")

// Contains reports whether p points to the value that other points to, or to one around
// it.
func (p Pointer) Contains(other Pointer) bool {
	if len(p) > len(other) {
		return false
	}
	for i, token := range p {
		if other[i] != token {
			return false
		}
	}
	return true
}

// descend returns what is left of the pointers in the element called token, and whether
// one of them points to the element itself.
func descend(pointers []Pointer, token []byte) (below []Pointer, hit bool) {
	for _, p := range pointers {
		switch {
		case p[0] != string(token):
		case len(p) == 1:
			hit = true
		default:
			below = append(below, p[1:])
		}
	}
	return below, hit
}

// Why a pointer finds no string.
var (
	// Find returns these as they are: its caller compares them.
	ErrNotJSON   = errors.New("the text is not JSON, or can be read in more than one way")
	ErrNotObject = errors.New("the pointer leads into a value that is not an object")
	ErrNotString = errors.New("the value is not a string")
	ErrRepeated  = errors.New("an object has the member more than once")
)

// Find returns the string that p points to in text, and false if an object on the way has
// no such member. It goes through objects only. The rest of the text must be JSON in
// UTF-8, and may be ambiguous.
func Find(text []byte, p Pointer) (value string, found bool, err error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return "", false, ErrNotJSON
	}
	c := canonicalizer{rest: text}
	for _, token := range p {
		if c.next() != '{' {
			return "", false, ErrNotObject
		}
		if found, err = c.enter(token); !found || err != nil {
			return "", false, err
		}
	}
	if c.next() != '"' {
		return "", false, ErrNotString
	}
	text, ok := c.decoded()
	if !ok {
		return "", false, ErrNotString // half of a surrogate pair
	}
	return string(text), true, nil
}

// enter goes from the start of an object to the value of its member called name.
func (c *canonicalizer) enter(name string) (found bool, err error) {
	var value []byte
	c.rest = c.rest[1:]
	for c.next() != '}' {
		own, ok := c.decoded()
		switch {
		case !ok:
			return false, ErrNotJSON
		case string(own) == name && value != nil:
			return false, ErrRepeated
		case string(own) == name:
			value = c.rest
		}
		c.skip()
	}
	c.rest = value
	return value != nil, nil
}

// decoded reads a string. It is valid until the next call.
func (c *canonicalizer) decoded() (text []byte, ok bool) {
	c.out = c.out[:0]
	ok = c.string()
	return c.text(0, len(c.out)), ok
}

// skip reads one value of any depth, and appends nothing.
func (c *canonicalizer) skip() {
	switch c.next() {
	case '"':
		c.rest = c.rest[1:]
		c.skipString()
		return
	case '{', '[':
	default: // a number or a word
		c.rest = bytes.TrimLeft(c.rest, "+-.0123456789abcdefghijklmnopqrstuvwxyzE")
		return
	}
	for depth := 0; ; {
		i := bytes.IndexAny(c.rest, `"{}[]`)
		special := c.rest[i]
		c.rest = c.rest[i+1:]
		switch special {
		case '"':
			c.skipString()
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				return
			}
		}
	}
}

// skipString reads the rest of a string, behind its opening quote.
func (c *canonicalizer) skipString() {
	for {
		i := bytes.IndexAny(c.rest, `"\`)
		if c.rest[i] == '"' {
			c.rest = c.rest[i+1:]
			return
		}
		c.rest = c.rest[i+2:] // with the byte that is escaped
	}
}
