// Package canonical writes JSON values and multipart forms in a notation that is the same
// for the same content. It is hashed and compared, never parsed.
package canonical

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/reprise-go/reprise/core/internal/digest"
)

// MaxDepth bounds the depth of the recursion, and how often a byte is moved while
// members are sorted.
const MaxDepth = 100

// AppendJSON appends a form of text that is the same for every notation of the
// same JSON value, and differs for different values. It is meant to be hashed, not read:
// each value is a letter followed by
//
//	z null, t true, f false: no more
//	n number: "-" if negative ‖ digits without leading and trailing zeros ‖ "e" ‖ exponent ‖ ";"; zero is 0e0
//	s string: u64 length ‖ bytes
//	a array:  its values ‖ "."
//	o object: its members, each a string and a value, sorted by the bytes of their canonical names ‖ "."
//
// The parts of the value that omit points to are left out, as if they were not there.
//
// ok is false if text can be read in more than one way; see CanonicalJSON of package
// protocol.
func AppendJSON(dst, text []byte, omit ...Pointer) (canonical []byte, ok bool) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return dst, false
	}
	c := canonicalizer{rest: text, out: dst}
	ok = c.value(0, omit)
	return c.out, ok
}

// canonicalizer reads valid JSON. Each of its methods reads one thing from rest and
// appends its canonical form to out. They return false if the text can be read in more
// than one way.
type canonicalizer struct {
	rest []byte
	out  []byte
}

// next returns the first byte of the next token. It skips commas and colons, which do not
// affect the order in valid JSON.
func (c *canonicalizer) next() byte {
	c.rest = bytes.TrimLeft(c.rest, " \t\r\n,:")
	return c.rest[0]
}

// value reads a value at this depth, without the parts that omit points to.
func (c *canonicalizer) value(depth int, omit []Pointer) bool {
	switch c.next() {
	case '{':
		return depth < MaxDepth && c.object(depth, omit)
	case '[':
		return depth < MaxDepth && c.array(depth, omit)
	case '"':
		return c.string()
	case 'n':
		return c.literal('z', "null")
	case 't':
		return c.literal('t', "true")
	case 'f':
		return c.literal('f', "false")
	default:
		return c.number()
	}
}

func (c *canonicalizer) literal(letter byte, word string) bool {
	c.rest = c.rest[len(word):]
	c.out = append(c.out, letter)
	return true
}

func (c *canonicalizer) array(depth int, omit []Pointer) bool {
	c.rest = c.rest[1:]
	c.out = append(c.out, 'a')
	for i := int64(0); c.next() != ']'; i++ {
		var index [20]byte
		below, omitted := descend(omit, strconv.AppendInt(index[:0], i, 10))
		start := len(c.out)
		if !c.value(depth+1, below) {
			return false
		}
		if omitted {
			c.out = c.out[:start]
		}
	}
	c.rest = c.rest[1:]
	c.out = append(c.out, '.')
	return true
}

func (c *canonicalizer) object(depth int, omit []Pointer) bool {
	type member struct{ start, value, end int } // where in out; nothing is kept of one that ends where it starts
	var members []member
	c.rest = c.rest[1:]
	c.out = append(c.out, 'o')
	first := len(c.out)
	for c.next() != '}' {
		m := member{start: len(c.out)}
		if !c.string() {
			return false
		}
		m.value = len(c.out)
		below, omitted := descend(omit, c.text(m.start, m.value))
		if !c.value(depth+1, below) {
			return false
		}
		m.end = len(c.out)
		if omitted {
			m.end = m.start
		}
		members = append(members, m)
	}
	c.rest = c.rest[1:]

	byName := func(a, b member) int { return bytes.Compare(c.out[a.start:a.value], c.out[b.start:b.value]) }
	slices.SortFunc(members, byName)
	for i := range len(members) - 1 {
		if byName(members[i], members[i+1]) == 0 {
			return false
		}
	}
	end := len(c.out)
	for _, m := range members {
		c.out = append(c.out, c.out[m.start:m.end]...)
	}
	c.out = append(c.out[:first], c.out[end:]...)
	c.out = append(c.out, '.')
	return true
}

func (c *canonicalizer) string() bool {
	c.rest = c.rest[1:]
	c.out = append(c.out, 's')
	var at int
	c.out, at = digest.OpenPart(c.out)
	for {
		special := bytes.IndexAny(c.rest, `"\`)
		c.out = append(c.out, c.rest[:special]...)
		quote := c.rest[special] == '"'
		c.rest = c.rest[special+1:]
		if quote {
			digest.ClosePart(c.out, at)
			return true
		}
		if !c.escape() {
			return false
		}
	}
}

// text returns the bytes of the string that string appended from start to end.
func (c *canonicalizer) text(start, end int) []byte { return c.out[start+1+8 : end] }

// escape reads the rest of an escape sequence. Half of a surrogate pair is invalid.
func (c *canonicalizer) escape() bool {
	letter := c.rest[0]
	c.rest = c.rest[1:]
	if letter != 'u' {
		if i := bytes.IndexByte([]byte("bfnrt"), letter); i >= 0 {
			letter = "\b\f\n\r\t"[i]
		}
		c.out = append(c.out, letter)
		return true
	}
	r := c.hex4()
	if utf16.IsSurrogate(r) {
		if !bytes.HasPrefix(c.rest, []byte(`\u`)) {
			return false
		}
		c.rest = c.rest[2:]
		if r = utf16.DecodeRune(r, c.hex4()); r == utf8.RuneError {
			return false
		}
	}
	c.out = utf8.AppendRune(c.out, r)
	return true
}

func (c *canonicalizer) hex4() rune {
	n, _ := strconv.ParseUint(string(c.rest[:4]), 16, 16) // valid JSON: four hexadecimal digits
	c.rest = c.rest[4:]
	return rune(n)
}

// number keeps numbers exact, unlike RFC 8785, which turns them into floating-point
// numbers: two amounts beyond 2^53 that differ by one are different amounts.
func (c *canonicalizer) number() bool {
	end := bytes.IndexFunc(c.rest, func(r rune) bool { return !isNumberByte(r) })
	if end < 0 {
		end = len(c.rest)
	}
	text := c.rest[:end]
	c.rest = c.rest[end:]

	text, negative := bytes.CutPrefix(text, []byte("-"))
	var exponent int64
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		var ok bool
		if exponent, ok = parseExponent(text[e+1:]); !ok {
			return false
		}
		text = text[:e]
	}
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	exponent -= int64(len(fraction))
	whole = bytes.TrimLeft(whole, "0")
	if len(whole) == 0 {
		fraction = bytes.TrimLeft(fraction, "0")
	}
	if len(whole)+len(fraction) == 0 {
		c.out = append(c.out, "n0e0;"...)
		return true
	}
	c.out = append(c.out, 'n')
	if negative {
		c.out = append(c.out, '-')
	}
	c.out = append(append(c.out, whole...), fraction...)
	for c.out[len(c.out)-1] == '0' {
		c.out = c.out[:len(c.out)-1]
		exponent++
	}
	c.out = append(c.out, 'e')
	c.out = strconv.AppendInt(c.out, exponent, 10)
	c.out = append(c.out, ';')
	return true
}

func isNumberByte(r rune) bool {
	return '0' <= r && r <= '9' || r == '+' || r == '-' || r == '.' || r == 'e' || r == 'E'
}

// parseExponent reads an exponent of up to 15 digits: one that long cannot overflow when
// it is adjusted.
func parseExponent(text []byte) (exponent int64, ok bool) {
	if len(bytes.TrimLeft(text, "+-0")) > 15 {
		return 0, false
	}
	exponent, err := strconv.ParseInt(string(text), 10, 64)
	return exponent, err == nil
}
