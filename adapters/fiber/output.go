package reprisefiber

import (
	"bytes"
	"iter"
	"strings"

	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// defaultType is the media type that fasthttp gives to a body without one. It is told from the same text of a handler by its address.
var defaultType = new(fasthttp.ResponseHeader).ContentType()

// fields goes over the header as views. The default media type is a part of it where it is going to be sent, and trailer
// fields are not: they are dropped.
func fields(h *fasthttp.ResponseHeader, typed bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		more := true
		h.VisitAll(func(name, value []byte) {
			isDefault := len(value) > 0 && &value[0] == &defaultType[0]
			if more && (typed || !isDefault) && !isTrailer(h, name) {
				more = yield(utils.UnsafeString(name), utils.UnsafeString(value))
			}
		})
	}
}

// isTrailer reports whether the field called name is sent behind the body.
func isTrailer(h *fasthttp.ResponseHeader, name []byte) (trailer bool) {
	h.VisitAllTrailer(func(announced []byte) { trailer = trailer || bytes.Equal(announced, name) })
	return trailer
}

// dropControlFields removes the fields with which only the protocol speaks (R11).
func dropControlFields(h *fasthttp.ResponseHeader) {
	var names []string
	for name := range fields(h, false) {
		if protocol.IsControlField(name) {
			names = append(names, strings.Clone(name))
		}
	}
	for _, name := range names {
		h.Del(name)
	}
}

// write makes r the response. Fields that outer layers set stay, unless r has them too.
func write(resp *fasthttp.Response, r protocol.Response) {
	h := &resp.Header
	h.SetNoDefaultContentType(true) // the first answer had none, or r has it (R16)
	for f := range r.Header.All() {
		if !f.Add {
			h.Del(f.Name)
		}
		h.Add(f.Name, f.Value)
	}
	h.SetStatusCode(r.Status)
	resp.SetBody(r.Body) // a copy: layers outside may go on with the response
}
