package canonical

import (
	"bytes"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/reprise-go/reprise/core/internal/digest"
	"github.com/reprise-go/reprise/core/internal/syntax"
)

// MaxBoundary is the length of the longest boundary (RFC 2046, section 5.1.1).
const MaxBoundary = 70

// maxPartFields bounds the header lines of a part, so that sorting them is cheap.
const maxPartFields = 16

// Form is a multipart form (RFC 7578) as its bytes were sent. [Form.Parse] reads it, and
// [Form.Write] writes its notation, in which the boundary does not count:
//
//	part(preamble) ‖ part(epilogue), and for each part of the form, in order:
//	part(disposition) ‖ u64(parameters) ‖ (part(name) ‖ part(value)) …
//		‖ u64(other fields) ‖ (part(name) ‖ part(value)) … ‖ part(content)
//
// The disposition, the names and the media type are in lower case, the fields sorted by
// name, and Content-Type has no parameters. A value in quotes counts as it is written
// between them. Neither method allocates memory, and both take time in proportion to the
// body.
type Form struct {
	preamble, epilogue []byte
	parts              []byte // from the end of the first delimiter on
	delimiter          [2 + MaxBoundary]byte
	length             int // of the delimiter
}

var (
	crlf   = []byte("\r\n")
	dashes = []byte("--")
)

// Parse reports whether body is a form with this boundary, which has 1 to [MaxBoundary]
// bytes. A body that any reader could take for another form is not one: the boundary
// stands in it only where it delimits, each line of a header ends in CRLF, is not folded,
// and has a name and a value without CR, LF and NUL, and the last delimiter is there. So
// two bodies with one notation have the same parts for every reader.
func (f *Form) Parse(body []byte, boundary string) bool {
	f.length = copy(f.delimiter[:], dashes)
	f.length += copy(f.delimiter[f.length:], boundary)
	start := bytes.Index(body, f.delimiter[:f.length])
	if start < 0 {
		return false
	}
	if f.preamble = body[:start]; start > 0 {
		var ok bool
		if f.preamble, ok = bytes.CutSuffix(f.preamble, crlf); !ok {
			return false
		}
	}
	f.parts = body[start+f.length:]
	var p formPart
	for rest := f.parts; ; {
		after, last, ok := cutDelimiter(rest)
		switch {
		case !ok:
			return false
		case last:
			f.epilogue = after
			return !bytes.Contains(after, f.delimiter[:f.length])
		}
		if rest, ok = f.next(after, &p); !ok {
			return false
		}
	}
}

// Write writes the notation of a form that was parsed to digest, through the memory of
// buf, which it returns.
func (f *Form) Write(to hash.Hash, buf []byte) []byte {
	buf = digest.AppendPart(digest.AppendPart(buf[:0], f.preamble), f.epilogue)
	var p formPart
	for rest := f.parts; ; {
		after, last, _ := cutDelimiter(rest)
		if last {
			to.Write(buf) // a digest takes everything
			return buf
		}
		rest, _ = f.next(after, &p)
		buf = appendHeader(buf, p.fields[:p.n])
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(p.content)))
		to.Write(buf)
		to.Write(p.content)
		buf = buf[:0]
	}
}

// cutDelimiter cuts the bytes between a boundary and the end of its line: the dashes of
// the last one, and padding.
func cutDelimiter(rest []byte) (after []byte, last, ok bool) {
	rest, last = bytes.CutPrefix(rest, dashes)
	rest = bytes.TrimLeft(rest, " \t")
	if last && len(rest) == 0 {
		return rest, true, true
	}
	after, ok = bytes.CutPrefix(rest, crlf)
	return after, last, ok
}

// next reads a part from the start of rest, and returns the bytes that follow the
// boundary behind it.
func (f *Form) next(rest []byte, p *formPart) (after []byte, ok bool) {
	end := bytes.Index(rest, f.delimiter[:f.length])
	if end < 0 || !bytes.HasSuffix(rest[:end], crlf) {
		return nil, false
	}
	return rest[end+f.length:], p.read(rest[:end])
}

// formPart is a part of a form.
type formPart struct {
	fields  [maxPartFields]partField // the first n, sorted by name
	n       int
	content []byte
}

// partField is a header line of a part.
type partField struct{ name, value []byte }

// read reads the header lines and the content from text, which ends in the CRLF that
// belongs to the delimiter behind it.
func (p *formPart) read(text []byte) bool {
	p.n = 0
	for {
		line, rest, ended := bytes.Cut(text, crlf)
		switch text = rest; {
		case !ended:
			return false // the header has no end
		case len(line) == 0:
			p.content = bytes.TrimSuffix(text, crlf)
			slices.SortStableFunc(p.fields[:p.n], comparePartFields)
			return true
		case p.n == maxPartFields:
			return false
		}
		name, value, there := bytes.Cut(line, []byte(":"))
		if !there || !syntax.ValidName(name) || bytes.ContainsAny(value, "\r\n\x00") {
			return false
		}
		p.fields[p.n] = partField{name, syntax.TrimSpace(value)}
		p.n++
	}
}

// comparePartFields orders header lines by their names in lower case.
func comparePartFields(a, b partField) int {
	for i := range min(len(a.name), len(b.name)) {
		if x, y := syntax.Lower(a.name[i]), syntax.Lower(b.name[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a.name) - len(b.name)
}

var (
	contentDisposition = []byte("content-disposition")
	contentType        = []byte("content-type")
)

// appendHeader appends the notation of the header of a part: its disposition, and its
// other fields. Of two dispositions the second is another field.
func appendHeader(dst []byte, fields []partField) []byte {
	at := slices.IndexFunc(fields, func(f partField) bool { return bytes.EqualFold(f.name, contentDisposition) })
	others := len(fields)
	if at < 0 {
		dst = appendDisposition(dst, nil)
	} else {
		dst = appendDisposition(dst, fields[at].value)
		others--
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(others)) //nolint:gosec // a number of lines
	for i, field := range fields {
		if i == at {
			continue
		}
		dst = appendLowerPart(dst, field.name)
		if bytes.EqualFold(field.name, contentType) {
			dst = appendLowerPart(dst, syntax.MediaType(field.value))
		} else {
			dst = digest.AppendPart(dst, field.value)
		}
	}
	return dst
}

// appendDisposition appends the notation of a Content-Disposition. A malformed one is a
// type, as it is written, without parameters.
func appendDisposition(dst, value []byte) []byte {
	start := len(dst)
	kind, rest, more := bytes.Cut(value, []byte(";"))
	dst = appendLowerPart(dst, syntax.TrimSpace(kind))
	dst, at := digest.OpenPart(dst) // the room of the number
	n := uint64(0)
	for ; more; n++ {
		var name, text []byte
		var ok bool
		if name, text, rest, more, ok = syntax.CutParameter(rest); !ok {
			return binary.BigEndian.AppendUint64(digest.AppendPart(dst[:start], value), 0)
		}
		dst = digest.AppendPart(appendLowerPart(dst, name), text)
	}
	binary.BigEndian.PutUint64(dst[at:], n)
	return dst
}

func appendLowerPart[S string | []byte](dst []byte, part S) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(part)))
	return syntax.AppendLower(dst, part)
}
