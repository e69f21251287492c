package reprisefasthttp

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// defaultType is the media type that fasthttp gives to a body without one. Its address
// distinguishes it from the same text set by a handler.
var defaultType = new(fasthttp.ResponseHeader).ContentType()

// fields iterates over the header without the trailer fields, as views. It includes the
// default media type if typed is set, which says that fasthttp will send it.
func fields(h *fasthttp.ResponseHeader, typed bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		more := true
		h.VisitAll(func(name, value []byte) {
			isDefault := len(value) > 0 && &value[0] == &defaultType[0]
			if more && (typed || !isDefault) && !isTrailer(h, name) {
				more = yield(view(name), view(value))
			}
		})
	}
}

// trailers iterates over the trailer fields as fasthttp sends them, as views: one line
// for each announcement, with the first value of its field.
func trailers(h *fasthttp.ResponseHeader) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		more := true
		h.VisitAllTrailer(func(name []byte) {
			more = more && yield(view(name), view(h.PeekBytes(name)))
		})
	}
}

// isTrailer reports whether the field called name is sent behind the body.
func isTrailer(h *fasthttp.ResponseHeader, name []byte) (trailer bool) {
	h.VisitAllTrailer(func(announced []byte) { trailer = trailer || bytes.Equal(announced, name) })
	return trailer
}

// tidy removes the control fields, which only the protocol sets (R11), and the line ends
// in values, which fasthttp would send as they are.
func tidy(x *protocol.Exchange, h *fasthttp.ResponseHeader) {
	var control, unclean []string
	for name, value := range fields(h, false) {
		switch clean, keep := x.Tidy(name, value); {
		case !keep:
			control = append(control, strings.Clone(name))
		case clean != value:
			unclean = append(unclean, strings.Clone(name))
		}
	}
	for _, name := range control {
		h.Del(name)
	}
	for _, name := range slices.Compact(unclean) {
		var cleaned []string
		for _, value := range h.PeekAll(name) {
			clean, _ := x.Tidy(name, string(value))
			cleaned = append(cleaned, clean)
		}
		h.Del(name)
		for _, value := range cleaned {
			h.Add(name, value)
		}
	}
}

// write turns resp into r. Fields that outer layers set stay, unless r has them too.
func write(resp *fasthttp.Response, r protocol.Response) {
	h := &resp.Header
	h.SetNoDefaultContentType(true) // the first response had none, or r has it (R16)
	for f := range r.Header.All() { // first, because newer releases of fasthttp fill the gap with the last field
		if !f.Add {
			h.Del(f.Name)
		}
	}
	for f := range r.Header.All() {
		if !f.Remove {
			h.Add(f.Name, f.Value)
		}
	}
	h.SetStatusCode(r.Status)
	if r.Stream != nil { // fasthttp closes it
		resp.SetBodyStream(r.Stream, int(r.Length))
		return
	}
	if r.Trailer.Len() == 0 {
		resp.SetBody(r.Body) // a copy: layers outside may go on with the response
		return
	}
	for f := range r.Trailer.All() {
		_ = h.AddTrailer(f.Name) // it was one in the first response, once for each line
		h.Set(f.Name, f.Value)
	}
	resp.SetBodyStream(bytes.NewReader(bytes.Clone(r.Body)), -1) // fasthttp sends trailers after chunks only
}

// mark adds the protocol's field, if there is one, to the handler's own.
func mark(h *fasthttp.ResponseHeader, f protocol.Field) {
	if f.Name != "" {
		h.Set(f.Name, f.Value)
	}
}

// failure is a reader that only fails.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }
