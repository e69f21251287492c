package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// A Fingerprinter digests the content of a request. A key that comes back with another
// fingerprint is refused with 422.
//
// r.Body has been read and must not be touched; body has all of its bytes, as they were
// sent, and must be neither kept nor modified. Of a form that was parsed before the
// middleware, and of which fewer bytes than declared are there, it has a notation of the
// names, values and files. The digest must include the key: otherwise anyone who can read
// the records could guess short bodies. An error refuses the request with 400
// request-invalid. A Fingerprinter is safe for concurrent use, and returns the same for
// the same request in every process and version: a rolling deploy with two different ones
// answers honest retries with 422.
//
// [DefaultFingerprint], [CanonicalJSON] and [NoFingerprint] are ready to use. Your own
// function is best built on one of them: call it with a copy of the request in which the
// parts that do not matter are empty.
type Fingerprinter func(r *Request, key string, body []byte) (store.Fingerprint, error)

// fingerprintLabel separates the digests of this version and purpose from all others. A
// change to it, or to anything else in the layout, answers 422 to the retry of every
// request in flight.
const fingerprintLabel = "reprise/fingerprint/1\x00"

// DefaultFingerprint is the [Fingerprinter] of a guard that configures none. It never
// fails. It digests the method, the escaped path, the raw query, the media type and
// charset, the content coding and the bytes of the body. Case, white space and quoting in
// media type, charset and coding do not count, nor do other parameters of the media type
// or other fields. Layout, version 1:
//
//	SHA-256("reprise/fingerprint/1\0" ‖ part("bytes") ‖ part(key) ‖ part(method) ‖ part(path) ‖ part(query)
//		‖ part(media types) ‖ part(charsets) ‖ part(content codings) ‖ part(body))
//
// where part(s) is u64(len s) ‖ s, lengths are big-endian, media types and charsets have
// one element for each Content-Type line, the codings one for each listed, and elements
// are in lower case and joined by commas.
func DefaultFingerprint(r *Request, key string, body []byte) (store.Fingerprint, error) {
	return fingerprint("bytes", r, key, body), nil
}

// CanonicalJSON is a [Fingerprinter] for clients that encode the JSON of a retry again.
// It differs from [DefaultFingerprint] if the media type is application/json, text/json
// or ends in +json: then it digests the JSON value, not its notation. The order of
// members, white space, escapes in strings and the notation of numbers do not matter: 1,
// 1.0 and 10e-1 are one number, and two different numbers are never taken for the same,
// however long they are.
//
// A body that can be read in more than one way is digested byte by byte, as by
// DefaultFingerprint: one that is not JSON in UTF-8, or has two members with one name,
// half of a surrogate pair, more than 100 levels, or an exponent of more than 15 digits.
// It never fails.
//
// The layout is that of DefaultFingerprint with "json" for "bytes", and the canonical
// form for the body. The parts of Config.Fingerprint.Omit are missing in that form.
func CanonicalJSON(r *Request, key string, body []byte) (store.Fingerprint, error) {
	return canonicalJSON(r, key, body, nil), nil
}

// canonicalJSON is CanonicalJSON without the parts of the body that omit points to.
func canonicalJSON(r *Request, key string, body []byte, omit []canonical.Pointer) store.Fingerprint {
	if isJSON(r) {
		if text, ok := canonical.AppendJSON(make([]byte, 0, len(body)+len(body)/2), body, omit...); ok {
			return fingerprint("json", r, key, text)
		}
	}
	return fingerprint("bytes", r, key, body)
}

// is reports whether f is the function other, and not one that calls it.
func (f Fingerprinter) is(other Fingerprinter) bool {
	return f != nil && reflect.ValueOf(f).Pointer() == reflect.ValueOf(other).Pointer()
}

// maxOmitted bounds the pointers of Config.Fingerprint.Omit.
const maxOmitted = 32

// omitted reads the pointers of Omit. The error wraps [store.ErrInvalid].
func (c *Fingerprinting) omitted() ([]canonical.Pointer, error) {
	const field = "Fingerprint.Omit"
	switch {
	case len(c.Omit) == 0:
		return nil, nil
	case !c.Func.is(CanonicalJSON):
		return nil, invalid(field, "needs CanonicalJSON as Fingerprint.Func: another function compares what is left out")
	case len(c.Omit) > maxOmitted:
		return nil, invalid(field, "has %d pointers, want up to %d", len(c.Omit), maxOmitted)
	}
	var list []canonical.Pointer
	for i, text := range c.Omit {
		p, err := canonical.ParsePointer(text)
		if err != nil {
			return nil, invalid(field, "%v", err)
		}
		for j, other := range list {
			if p.Contains(other) || other.Contains(p) {
				return nil, invalid(field, "%q and %q lead into one another: list the outer one", c.Omit[j], c.Omit[i])
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// NoFingerprint is a [Fingerprinter] that does not bind a key to its request: every later
// request with the key gets the response to the first. It is for clients that cannot
// repeat a request exactly, and it gives up the protection against reused keys. It never
// fails. The layout is SHA-256("reprise/fingerprint/1\0" ‖ part("none") ‖ part(key)).
func NoFingerprint(_ *Request, key string, _ []byte) (store.Fingerprint, error) {
	var stack [512]byte
	b := append(stack[:0], fingerprintLabel...)
	b = appendPart(b, "none")
	b = appendPart(b, key)
	return sha256.Sum256(b), nil
}

// withFields adds request fields to a fingerprint. names are in lower case and sorted.
// Layout, version 1:
//
//	SHA-256("reprise/fingerprint/1\0" ‖ part("fields") ‖ part(fingerprint)
//		‖ for each name: part(name) ‖ u64(number of lines) ‖ part(line) …)
//
// with spaces and tabs around each line removed. "host" is the request's Host, in lower
// case.
func withFields(fp store.Fingerprint, r *Request, names []string) store.Fingerprint {
	d := digesters.Get().(*digester)
	b := d.parts[:0]
	b = append(b, fingerprintLabel...)
	b = appendPart(b, "fields")
	b = appendPart(b, fp[:])
	for _, name := range names {
		b = appendPart(b, name)
		if name == "host" && r.Host != "" {
			b = binary.BigEndian.AppendUint64(b, 1)
			b = appendPart(b, strings.ToLower(r.Host))
			continue
		}
		lines := r.values(name)
		b = binary.BigEndian.AppendUint64(b, uint64(len(lines)))
		for _, line := range lines {
			b = appendPart(b, syntax.TrimSpace(line))
		}
	}
	fp = sha256.Sum256(b)
	d.parts = again(b)
	digesters.Put(d)
	return fp
}

// sortedNames returns field names in lower case, each once, sorted.
func sortedNames(names []string) []string {
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	slices.Sort(lower)
	return slices.Compact(lower)
}

// digester has the buffers that a fingerprint needs. They are reused.
type digester struct {
	hash     hash.Hash
	parts    []byte // all but the content
	charsets []byte // a separate part, because it is read together with the media types
}

var digesters = sync.Pool{New: func() any { return &digester{hash: sha256.New()} }}

// fingerprint digests the parts of r and content, which is its body in the given form.
func fingerprint(form string, r *Request, key string, content []byte) store.Fingerprint {
	d := digesters.Get().(*digester)
	b := d.parts[:0]
	b = append(b, fingerprintLabel...)
	b = appendPart(b, form)
	b = appendPart(b, key)
	b = appendPart(b, r.Method)
	b = appendPart(b, r.Path)
	b = appendPart(b, r.RawQuery)

	b, at := canonical.OpenPart(b)
	d.charsets = d.charsets[:0]
	for i, line := range r.values("Content-Type") {
		media, charset := splitMediaType(line)
		b = appendElement(b, i, media)
		d.charsets = appendElement(d.charsets, i, charset)
	}
	canonical.ClosePart(b, at)
	b = appendPart(b, d.charsets)

	b, at = canonical.OpenPart(b)
	b = appendCodings(b, r.values("Content-Encoding"))
	canonical.ClosePart(b, at)

	b = binary.BigEndian.AppendUint64(b, uint64(len(content)))
	d.hash.Reset()
	d.hash.Write(b) // a digest takes everything
	d.hash.Write(content)
	sum := store.Fingerprint(d.hash.Sum(b[:0]))
	d.parts, d.charsets = again(b), again(d.charsets)
	digesters.Put(d)
	return sum
}

// appendPart appends s with its length before it, so that two different lists of parts
// never have the same bytes.
func appendPart[S string | []byte](b []byte, s S) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// appendElement appends element i of a list, in lower case.
func appendElement(b []byte, i int, element string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return syntax.AppendLower(b, element)
}

// appendCodings appends the content codings of all lines as one list.
func appendCodings(b []byte, lines []string) []byte {
	n := 0
	for _, list := range lines {
		for list != "" {
			var coding string
			coding, list, _ = strings.Cut(list, ",")
			if coding = syntax.TrimSpace(coding); coding != "" {
				b = appendElement(b, n, coding)
				n++
			}
		}
	}
	return b
}

// isJSON reports whether r has a Content-Type, and every line of it is a JSON type.
func isJSON(r *Request) bool {
	lines := r.values("Content-Type")
	for _, line := range lines {
		var stack [64]byte
		media, _ := splitMediaType(line)
		lower := string(syntax.AppendLower(stack[:0], media))
		if lower != "application/json" && lower != "text/json" && !strings.HasSuffix(lower, "+json") {
			return false
		}
	}
	return len(lines) > 0
}

// isMultipart reports whether a Content-Type of r is one of forms in parts.
func isMultipart(r *Request) bool {
	for _, line := range r.values("Content-Type") {
		const prefix = "multipart/"
		if media, _ := splitMediaType(line); len(media) >= len(prefix) && strings.EqualFold(media[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// splitMediaType returns the media type of a Content-Type line and the value of its first
// charset parameter without quotes, both as they are written. A malformed line is split,
// too, and always in the same way.
func splitMediaType(line string) (media, charset string) {
	media, parameters, _ := strings.Cut(line, ";")
	for parameters != "" {
		var parameter string
		parameter, parameters = cutParameter(parameters)
		if name, value, _ := strings.Cut(parameter, "="); strings.EqualFold(syntax.TrimSpace(name), "charset") {
			return syntax.TrimSpace(media), unquote(syntax.TrimSpace(value))
		}
	}
	return syntax.TrimSpace(media), ""
}

// cutParameter cuts at the first semicolon that is not in a quoted string.
func cutParameter(s string) (parameter, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ';' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// unquote removes the quotes of a quoted string. Escapes stay: no charset needs one.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
