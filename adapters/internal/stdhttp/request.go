// Package stdhttp has the half of an adapter that net/http, Gin and Echo have in common:
// a [http.Request] as the protocol reads it, the request of the handler, and the
// [http.ResponseWriter] that records a response.
package stdhttp

import (
	"errors"
	"mime/multipart"
	"net/http"

	"github.com/reprise-go/reprise/core/protocol"
)

// Request returns the part of r that the protocol reads. tooLarge reports whether reading
// the body failed at a limit outside: it is [TooLarge], or a function that calls it where
// the framework has its own errors for that.
func Request(r *http.Request, tooLarge func(error) bool) protocol.Request {
	length := r.ContentLength
	if length > 0 && len(r.Header["Content-Length"]) == 0 {
		length = -1 // a layer that decodes the body, such as gzip of gin-contrib, removed the field of the coded one
	}
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header,
		HTTP10: r.ProtoMajor == 1 && r.ProtoMinor == 0, HTTP2: r.ProtoMajor >= 2,
		Body: r.Body, Length: length, Parsed: (*Parsed)(r), TooLarge: tooLarge,
	}
}

// Parsed gives the protocol the form that a layer outside has parsed.
type Parsed http.Request

// ParsedBytes returns nil: net/http keeps no bytes.
func (p *Parsed) ParsedBytes() []byte { return nil }

// ParsedForm returns the form, nil where none was parsed.
func (p *Parsed) ParsedForm() *multipart.Form {
	switch {
	case p.MultipartForm != nil:
		return p.MultipartForm
	case p.PostForm != nil:
		return &multipart.Form{Value: p.PostForm}
	default:
		return nil
	}
}

// TooLarge reports whether reading a body failed at the limit of an outer
// [http.MaxBytesHandler] or the like.
func TooLarge(err error) bool {
	var limit *http.MaxBytesError
	return errors.As(err, &limit)
}

// Inner returns the request of the handler: r with the context and the body of the
// exchange.
func Inner(r *http.Request, x *protocol.Exchange) *http.Request {
	inner := r.WithContext(x.Context())
	inner.Body = x.Body()
	return inner
}

// PutBack restores the body of a request that passes: body has the bytes that the
// protocol read of it, nil for none.
func PutBack(r *http.Request, body *protocol.Body) {
	if body != nil {
		r.Body = body
	}
}

// ReturnForm gives outer, the server's request, the form that the handler parsed in
// inner: the server removes the files of its own request only.
func ReturnForm(outer, inner *http.Request) {
	if inner.MultipartForm != nil {
		outer.MultipartForm = inner.MultipartForm
	}
}
