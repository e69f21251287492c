package adaptertest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// keyField is the field that carries the key unless a case configures another.
const keyField = "Idempotency-Key"

// line is one line of a header or trailer section.
type line struct{ name, value string }

// call is a request that a case makes. It is a value: a copy with another field is
// another request. Its methods return such copies.
type call struct {
	method  string
	target  string // path and query, as they are sent
	tenant  string // who asks; see TenantHeader
	host    string // the Host that is asked; empty is any
	keys    []string
	program string // instructions to the handler; empty: the default response
	fields  []line // further header lines, after the others
	body    string

	anonymous bool // it names no tenant
}

func (c call) withMethod(method string) call { c.method = method; return c }
func (c call) withTarget(target string) call { c.target = target; return c }
func (c call) withTenant(tenant string) call { c.tenant = tenant; return c }
func (c call) withHost(host string) call     { c.host = host; return c }
func (c call) withBody(body string) call     { c.body = body; return c }

// withoutTenant leaves the tenant header out.
func (c call) withoutTenant() call { c.anonymous = true; return c }

// withKeys makes each value a line of the key's field, as it is: quoted or bare. Without
// values the call has no key.
func (c call) withKeys(values ...string) call { c.keys = values; return c }

// with adds a header line.
func (c call) with(name, value string) call {
	c.fields = append(slices.Clip(c.fields), line{name, value})
	return c
}

// does sets the program of the handler.
func (c call) does(p Program) call { c.program = p.Header(); return c }

// lines returns the header lines in the order in which they are sent, without those that
// frame the body.
func (c call) lines() []line {
	var lines []line
	if !c.anonymous {
		lines = append(lines, line{TenantHeader, c.tenant})
	}
	if c.program != "" {
		lines = append(lines, line{ProgramHeader, c.program})
	}
	for _, key := range c.keys {
		lines = append(lines, line{keyField, key})
	}
	return append(lines, c.fields...)
}

// head returns the bytes of the request up to its body, with framing as the last lines.
func (c call) head(framing ...line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", c.method, c.target, cmp.Or(c.host, "conformance.test"))
	for _, l := range append(c.lines(), framing...) {
		fmt.Fprintf(&b, "%s: %s\r\n", l.name, l.value)
	}
	b.WriteString("\r\n")
	return b.String()
}

// bytes returns the whole request, its body with a declared length.
func (c call) bytes() string {
	return c.head(line{"Content-Length", strconv.Itoa(len(c.body))}) + c.body
}

// chunked returns the whole request, its body in chunks of at most size bytes, with a
// trailer section.
func (c call) chunked(size int, trailers ...line) string {
	var b strings.Builder
	framing := []line{{"Transfer-Encoding", "chunked"}}
	for _, t := range trailers {
		framing = append(framing, line{"Trailer", t.name})
	}
	b.WriteString(c.head(framing...))
	for rest := c.body; rest != ""; {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\n")
	for _, t := range trailers {
		fmt.Fprintf(&b, "%s: %s\r\n", t.name, t.value)
	}
	b.WriteString("\r\n")
	return b.String()
}

// request returns the call as the protocol package sees it, so that a case can compute
// the server's decision.
func (c call) request() *protocol.Request {
	path, query, _ := strings.Cut(c.target, "?")
	return &protocol.Request{Method: c.method, Path: path, RawQuery: query, Header: headerOf(c.lines()), Bytes: []byte(c.body)}
}

// headerOf implements the header of a [protocol.Request] over header lines.
type headerOf []line

// Values implements [protocol.HeaderValues].
func (h headerOf) Values(name string) []string { return valuesOf(h, name) }

// valuesOf returns the values of the lines called name, in any case, in their order.
func valuesOf(lines []line, name string) []string {
	var values []string
	for _, l := range lines {
		if strings.EqualFold(l.name, name) {
			values = append(values, l.value)
		}
	}
	return values
}
