package reprisefiber_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
)

// hidden is a second request in the body of another, where some servers would read it as
// a separate one.
const hidden = "POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: hidden\r\nContent-Length: 0\r\n\r\n"

// framed is a keyed request with these lines and bytes behind its header, up to which it
// is the same for all.
func framed(lines []string, behind string) string {
	return rawRequest(append([]string{key("k")}, lines...)...) + behind
}

// ambiguous has requests that their recipients read in different ways.
var ambiguous = map[string]string{
	"a folded line":                   framed([]string{"X-One: 1", " two", "Content-Length: 4"}, "body"),
	"a folded line before a hidden":   framed([]string{"X-One: 1", "\tabcdefghijklmnopqrstuvwxyz", "Content-Length: 80"}, hidden),
	"two lengths":                     framed([]string{"Content-Length: 0", "Content-Length: 80"}, hidden),
	"two lengths, the larger first":   framed([]string{"Content-Length: 80", "Content-Length: 0"}, hidden),
	"two equal lengths":               framed([]string{"Content-Length: 4", "Content-Length: 4"}, "body"),
	"a length beside chunks":          framed([]string{"Content-Length: 85", "Transfer-Encoding: chunked"}, "0\r\n\r\n"+hidden),
	"chunks beside a length":          framed([]string{"Transfer-Encoding: chunked", "Content-Length: 85"}, "0\r\n\r\n"+hidden),
	"another coding":                  framed([]string{"Transfer-Encoding: gzip"}, "0\r\n\r\n"),
	"two codings":                     framed([]string{"Transfer-Encoding: gzip, chunked"}, "0\r\n\r\n"),
	"the identity coding":             framed([]string{"Transfer-Encoding: identity", "Content-Length: 4"}, "body"),
	"a coding in disguise":            framed([]string{"Transfer-Encoding: \x0bchunked"}, "0\r\n\r\n"),
	"chunks in HTTP/1.0":              strings.Replace(framed([]string{"Transfer-Encoding: chunked"}, "0\r\n\r\n"), "HTTP/1.1", "HTTP/1.0", 1),
	"a name with NUL":                 rawRequest("Idempotency-Key\x00: k", "Content-Length: 4") + "body",
	"a name with a control byte":      rawRequest("\x0bIdempotency-Key: k", "Content-Length: 4") + "body",
	"a key behind a bare CR":          rawRequest("X-One: 1\rIdempotency-Key: k", "Content-Length: 4") + "body",
	"a key in a folded line":          rawRequest("X-One: 1", " Idempotency-Key: k", "Content-Length: 4") + "body",
	"a length behind a bare line end": framed([]string{"X-One: 1\nContent-Length: 4"}, "body"),
}

func TestR27bAmbiguousRequestsDoNotRun(t *testing.T) {
	t.Parallel()
	for name, raw := range ambiguous {
		for _, config := range []fiber.Config{{}, {StreamRequestBody: true}, {DisableHeaderNormalizing: true}} {
			s := serve(t, options{fiber: config}, handle(echo))
			c := s.dial(t)
			c.send(t, raw)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(c.r, nil)
			if err != nil {
				t.Errorf("%s: no answer: %v", name, err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest || !resp.Close {
				t.Errorf("%s: answered %d, closes %t", name, resp.StatusCode, resp.Close)
			}
			if runs := s.runs.Load(); runs > 0 {
				t.Errorf("%s: %d runs", name, runs)
			}
		}
	}
}

// Trailer fields do not authenticate a request.
func TestR7ScopeSeesNoTrailers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for name, tc := range map[string]struct {
			lines    []string
			trailers []string
			scope    func(*fiber.Ctx) (string, error)
		}{
			"a field":          {nil, []string{"X-Tenant: victim"}, tenantField},
			"an announced one": {[]string{"Trailer: X-Tenant"}, []string{"X-Tenant: victim"}, tenantField},
			"in another case":  {nil, []string{"x-TENANT: victim"}, tenantField},
			"a second line":    {[]string{"X-Tenant: "}, []string{"X-Tenant: victim"}, lastTenant},
			"a cookie":         {nil, []string{"Cookie: tenant=victim"}, func(c *fiber.Ctx) (string, error) { return c.Cookies("tenant"), nil }},
			"another cookie": {
				[]string{"Cookie: a=b"},
				[]string{"Cookie: tenant=victim"},
				func(c *fiber.Ctx) (string, error) { return c.Cookies("tenant"), nil },
			},
			"a content type": {nil, []string{"Content-Type: victim"}, func(c *fiber.Ctx) (string, error) { return c.Get("Content-Type"), nil }},
		} {
			s := serve(t, options{fiber: fiber.Config{StreamRequestBody: stream}, scope: tc.scope}, handle(echo))
			a := s.do(t, chunked([]string{"body"}, tc.trailers, append(tc.lines, key("k"))...))
			if !a.closes { // newer releases of fasthttp refuse some trailers
				a.want(t, 403, "scope-missing")
			}
			if runs := s.runs.Load(); runs > 0 {
				t.Errorf("%s (stream %t): ran for the victim", name, stream)
			}
		}
	}
}

func tenantField(c *fiber.Ctx) (string, error) { return c.Get("X-Tenant"), nil }

// lastTenant takes the last line of the field, as an application may do.
func lastTenant(c *fiber.Ctx) (string, error) {
	lines := c.Request().Header.PeekAll("X-Tenant")
	if len(lines) == 0 {
		return "", nil
	}
	return string(lines[len(lines)-1]), nil
}
