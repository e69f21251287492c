// Package wire is an HTTP/1.1 client that sends exact bytes: a request may be malformed
// on purpose. It counts and bounds everything it sends and receives, and it dials only
// the addresses that its [Guard] permits.
package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Field is one line of a header section.
type Field struct{ Name, Value string }

// Call is a request. Its methods return changed copies.
type Call struct {
	Method   string
	Target   string // the request target: path and query
	Host     string
	Fields   []Field
	Body     string
	Chunked  bool    // send the body in two chunks, without a length
	Trailers []Field // behind a chunked body
}

// With returns the call with another field line at the end.
func (c Call) With(name, value string) Call {
	c.Fields = append(slices.Clip(c.Fields), Field{name, value})
	return c
}

// Without returns the call without the lines of a field.
func (c Call) Without(name string) Call {
	c.Fields = slices.DeleteFunc(slices.Clone(c.Fields), func(f Field) bool { return strings.EqualFold(f.Name, name) })
	return c
}

// Set returns the call with one line of a field.
func (c Call) Set(name, value string) Call { return c.Without(name).With(name, value) }

// WithBody returns the call with another body.
func (c Call) WithBody(body string) Call {
	c.Body = body
	return c
}

// WithMethod returns the call with another method.
func (c Call) WithMethod(method string) Call {
	c.Method = method
	return c
}

// WithTarget returns the call with another request target.
func (c Call) WithTarget(target string) Call {
	c.Target = target
	return c
}

// At returns the call to an endpoint at another place.
func (c Call) At(to *url.URL) Call {
	c.Host, c.Target = to.Host, to.RequestURI()
	return c
}

// InChunks returns the call with its body in chunks, and trailers behind them.
func (c Call) InChunks(trailers ...Field) Call {
	c.Chunked, c.Trailers = true, trailers
	return c
}

// Value returns the first value of a field.
func (c Call) Value(name string) string {
	for _, f := range c.Fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Head returns the bytes up to the body, with framing in place of the call's own length
// or transfer coding.
func (c Call) Head(framing ...Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", c.Method, c.Target, c.Host)
	for _, f := range append(slices.Clip(c.Fields), framing...) {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	return b.String() + "\r\n"
}

// Bytes returns the call as it is sent.
func (c Call) Bytes() string {
	if c.Chunked {
		return c.Head(Field{"Transfer-Encoding", "chunked"}) + c.chunks()
	}
	if c.Body == "" && c.Method != http.MethodPost && c.Method != http.MethodPatch && c.Method != http.MethodPut {
		return c.Head()
	}
	return c.Head(Field{"Content-Length", strconv.Itoa(len(c.Body))}) + c.Body
}

func (c Call) chunks() string {
	var b strings.Builder
	half := len(c.Body) / 2
	for _, part := range []string{c.Body[:half], c.Body[half:]} {
		if part != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
		}
	}
	b.WriteString("0\r\n")
	for _, f := range c.Trailers {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	return b.String() + "\r\n"
}
