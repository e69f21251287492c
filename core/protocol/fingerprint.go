package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/core/internal/digest"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
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
// answers honest retries with 422. So does a function that digests the bytes of a
// multipart form, because clients choose a new boundary for each attempt.
//
// [DefaultFingerprint], [CanonicalJSON] and [NoFingerprint] are ready to use. Your own
// function is best built on one of them: call it with a copy of the request in which the
// parts that do not matter are empty.
type Fingerprinter func(r *Request, key string, body []byte) (store.Fingerprint, error)

// fingerprintLabel separates the digests of this version and purpose from all others. A
// change to it, or to anything else in the layout, answers 422 to the retry of every
// request in flight.
const fingerprintLabel = "reprise/fingerprint/2\x00"

// DefaultFingerprint is the [Fingerprinter] of a guard that configures none. It never
// fails. It digests the method, the escaped path, the raw query, the media type, the
// content coding and the body: the bytes, or the parts of a multipart form. The case of
// media type and coding does not count, nor do the parameters of the media type, such as
// a charset, or other fields. Layout, version 2:
//
//	SHA-256("reprise/fingerprint/2\0" ‖ part("bytes") ‖ part(key) ‖ part(method) ‖ part(path) ‖ part(query)
//		‖ part(media types) ‖ part(content codings) ‖ part(body))
//
// where part(s) is u64(len s) ‖ s, lengths are big-endian, media types have one element
// for each Content-Type line, the codings one for each listed, and elements are in lower
// case and joined by commas.
//
// The body of a request whose only Content-Type is multipart/form-data, without a
// content coding, is digested as a form (R21c): its parts in order, each with its name,
// file name, media type, other fields and bytes, but not the boundary. Layout:
// "form" for "bytes", and the notation of docs/reference/formats.md for part(body). A
// body that cannot be read as a form, or that could be read as two, is digested byte by
// byte.
//
// Of a form that another layer parsed before, and whose bytes are gone, only the names,
// values and files are known: see [Request.Form]. They are digested as a form that has
// them in the order of their names, the values first. A retry whose bytes are there, such
// as one that another instance serves, is the same request if its parts have that order
// and its values have no fields but their names. It otherwise gets 422.
func DefaultFingerprint(r *Request, key string, body []byte) (store.Fingerprint, error) {
	return contentFingerprint(r, key, body), nil
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
// A multipart form is digested by its parts, and JSON in one of them byte by byte. It
// never fails.
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
			return fingerprint("json", r, key, text, nil)
		}
	}
	return contentFingerprint(r, key, body)
}

// contentFingerprint digests a request with its body as a form, or else as bytes.
func contentFingerprint(r *Request, key string, body []byte) store.Fingerprint {
	if r.notation {
		return fingerprint("form", r, key, body, nil)
	}
	var form canonical.Form
	if parseForm(r, body, &form) {
		return fingerprint("form", r, key, nil, &form)
	}
	return fingerprint("bytes", r, key, body, nil)
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
// fails. The layout is SHA-256("reprise/fingerprint/2\0" ‖ part("none") ‖ part(key)).
func NoFingerprint(_ *Request, key string, _ []byte) (store.Fingerprint, error) {
	var stack [512]byte
	b := append(stack[:0], fingerprintLabel...)
	b = digest.AppendPart(b, "none")
	b = digest.AppendPart(b, key)
	return sha256.Sum256(b), nil
}

// withFields adds request fields to a fingerprint. names are in lower case and sorted.
// Layout, version 2:
//
//	SHA-256("reprise/fingerprint/2\0" ‖ part("fields") ‖ part(fingerprint)
//		‖ for each name: part(name) ‖ u64(number of lines) ‖ part(line) …)
//
// with spaces and tabs around each line removed. "host" is the request's Host, in lower
// case.
func withFields(fp store.Fingerprint, r *Request, names []string) store.Fingerprint {
	d := digesters.Get().(*digester)
	b := d.parts[:0]
	b = append(b, fingerprintLabel...)
	b = digest.AppendPart(b, "fields")
	b = digest.AppendPart(b, fp[:])
	for _, name := range names {
		b = digest.AppendPart(b, name)
		if name == "host" && r.Host != "" {
			b = binary.BigEndian.AppendUint64(b, 1)
			b = digest.AppendPart(b, strings.ToLower(r.Host))
			continue
		}
		lines := r.values(name)
		b = binary.BigEndian.AppendUint64(b, uint64(len(lines)))
		for _, line := range lines {
			b = digest.AppendPart(b, syntax.TrimSpace(line))
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
	hash  hash.Hash
	parts []byte // all but the content
}

var digesters = sync.Pool{New: func() any { return &digester{hash: sha256.New()} }}

// fingerprint digests the parts of r and its body: parsed, if that is not nil, or else
// content, which is the body in the given form.
func fingerprint(form string, r *Request, key string, content []byte, parsed *canonical.Form) store.Fingerprint {
	d := digesters.Get().(*digester)
	b := d.parts[:0]
	b = append(b, fingerprintLabel...)
	b = digest.AppendPart(b, form)
	b = digest.AppendPart(b, key)
	b = digest.AppendPart(b, r.Method)
	b = digest.AppendPart(b, r.Path)
	b = digest.AppendPart(b, r.RawQuery)

	b, at := digest.OpenPart(b)
	for i, line := range r.values("Content-Type") {
		b = appendElement(b, i, syntax.MediaType(line))
	}
	digest.ClosePart(b, at)

	b, at = digest.OpenPart(b)
	b = appendCodings(b, r.values("Content-Encoding"))
	digest.ClosePart(b, at)

	if form != "form" { // whose notation ends where the digest does
		b = binary.BigEndian.AppendUint64(b, uint64(len(content)))
	}
	d.hash.Reset()
	d.hash.Write(b) // a digest takes everything
	if parsed != nil {
		b = parsed.Write(d.hash, b)
	} else {
		d.hash.Write(content)
	}
	sum := store.Fingerprint(d.hash.Sum(b[:0]))
	d.parts = again(b)
	digesters.Put(d)
	return sum
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
