package reprisefasthttp

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// fasthttp reads the trailer section of a chunked body into the header of its request,
// behind the fields that came before the body. Only the bytes of the header section,
// which fasthttp keeps, tell the two apart.

// section returns the header section as it came in, as a view.
func (in *input) section() protocol.HeaderSection {
	return protocol.HeaderSection(view(in.req.Header.RawHeaders()))
}

// hasTrailers reports whether there may be trailers in the header: only a body with a
// transfer coding has any.
func (in *input) hasTrailers() bool {
	return in.req.Header.ContentLength() <= 0 && in.section().Count(fasthttp.HeaderTransferEncoding) > 0
}

// principal calls scope with a header that has only the fields before the body (R7).
// Afterwards the header has its trailers again, and its strings are where they were.
func principal[C any](in *input, scope func(C) (string, error), c C) (string, error) {
	if !in.hasTrailers() {
		return scope(c)
	}
	h := &in.req.Header
	var whole fasthttp.RequestHeader
	move(&whole, h)
	defer move(h, &whole)
	whole.CopyTo(h)
	dropTrailers(h, protocol.HeaderSection(view(whole.RawHeaders())))
	return scope(c) // the name may be a part of the copy, which is not used again
}

// dropTrailers removes every field line from h, and every cookie, that is not in the
// section. A line that a layer outside added to a chunked request looks like a trailer,
// and goes too.
func dropTrailers(h *fasthttp.RequestHeader, section protocol.HeaderSection) {
	type line struct{ name, value string }
	lines := make(map[string][]line) // by name in lower case
	h.VisitAll(func(name, value []byte) {
		folded := strings.ToLower(string(name))
		lines[folded] = append(lines[folded], line{string(name), string(value)})
	})
	for name, present := range lines {
		sent := section.Count(name)
		switch {
		case name == "cookie" && sent > 0:
			dropCookies(h, section)
		case len(present) > sent && !framing[name]:
			for _, l := range present {
				h.Del(l.name)
			}
			for _, l := range present[:sent] {
				h.Add(l.name, l.value)
			}
		}
	}
}

// framing has the fields that fasthttp accepts in no trailer section, and lists under
// other conditions.
var framing = map[string]bool{"host": true, "content-length": true, "transfer-encoding": true, "connection": true}

// dropCookies removes the cookies whose names are not in the section as often. The values
// stay, because a layer outside may have decrypted them.
func dropCookies(h *fasthttp.RequestHeader, section protocol.HeaderSection) {
	var before fasthttp.RequestHeader
	for value := range section.Values(fasthttp.HeaderCookie) {
		before.Add(fasthttp.HeaderCookie, value)
	}
	left := make(map[string]int)
	before.VisitAllCookie(func(name, _ []byte) { left[string(name)]++ })
	var kept []string
	h.VisitAllCookie(func(name, value []byte) {
		if left[string(name)]--; left[string(name)] >= 0 {
			kept = append(kept, string(name)+"="+string(value))
		}
	})
	h.DelAllCookies()
	h.Set(fasthttp.HeaderCookie, strings.Join(kept, "; "))
}
