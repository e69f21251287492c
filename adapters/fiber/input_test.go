package reprisefiber_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// echo answers with the body as the handler sees it.
func echo(c *fiber.Ctx) error { return c.Send(c.Request().Body()) }

// chunked is a request in chunks, with a trailer section.
func chunked(chunks []string, trailers []string, lines ...string) string {
	var raw strings.Builder
	raw.WriteString(harness.Head(append(lines, "Transfer-Encoding: chunked")...))
	for _, c := range chunks {
		fmt.Fprintf(&raw, "%x\r\n%s\r\n", len(c), c)
	}
	raw.WriteString("0\r\n")
	for _, t := range trailers {
		raw.WriteString(t + "\r\n")
	}
	return raw.String() + "\r\n"
}

func TestKeysThatAnOuterLayerSetsCount(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(echo, func(c *fiber.Ctx) error {
		c.Request().Header.Set("Idempotency-Key", c.Get("X-Message-Id"))
		return c.Next()
	}))
	s.Twice(harness.Request("", "X-Message-Id: m"))
	s.Twice(harness.Request("body", "X-Message-Id: n"))
	s.Ran(2)
}

// The name of a field is case-insensitive, also where the server leaves it as it was
// sent.
func TestKeyIsFoundInAFieldThatIsNotNormalized(t *testing.T) {
	t.Parallel()
	s := serve(t, options{fiber: fiber.Config{DisableHeaderNormalizing: true}}, handle(echo))
	s.Twice(harness.Request("body", "iDeMpOtEnCy-KeY: k"))
	s.Ran(1)
}

func TestR24BodiesAreComparedAsTheyWereSent(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error { return c.Send(c.Body()) }))
	pack := func(level int) string {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, level)
		_, _ = w.Write([]byte("the same text"))
		_ = w.Close()
		return b.String()
	}
	first := s.Twice(harness.Request(pack(gzip.BestSpeed), harness.Key("k"), "Content-Encoding: gzip"))
	if first.Body != "the same text" {
		t.Errorf("the handler decompresses %q", first.Body)
	}
	other := s.Do(harness.Request(pack(gzip.NoCompression), harness.Key("k"), "Content-Encoding: gzip"))
	other.Want(t, 422, "key-reused")
}

// fasthttp reads the first bytes of a stream before the handlers. It takes the end of the
// connection for that of the rest, and the rest for the next request.
func TestStreamsThatAreNotReadToTheirEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, options{
		fiber: fiber.Config{StreamRequestBody: true}, guard: protocol.Config{Limits: protocol.Limits{RequestBody: 25_000}},
	}, handle(echo))
	for name, tc := range map[string]struct {
		raw    string
		status int
	}{
		"broken off (R27)":         {harness.Head(harness.Key("k"), "Content-Length: 20000") + strings.Repeat("x", 10_000), 400},
		"a bad chunk (R27)":        {harness.Head(harness.Key("k"), "Transfer-Encoding: chunked") + "4e20\r\n" + strings.Repeat("x", 20_000) + "\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
		"broken in a chunk (R27)":  {harness.Head(harness.Key("k"), "Transfer-Encoding: chunked") + "4e20\r\n" + strings.Repeat("x", 10_000), 400},
		"too large to drain (R47)": {chunked([]string{strings.Repeat("x", 300_000)}, nil, harness.Key("k")), 413},
		"too large to await (R47)": {harness.Head(harness.Key("k"), "Content-Length: 1000000000") + strings.Repeat("x", 10_000), 413},
	} {
		c := s.Dial(tc.raw)
		_ = c.CloseWrite() // the server may have closed it
		if a := c.Receive(); a.Status != tc.status || tc.status == 413 && !a.Closes {
			t.Errorf("%s: %d %s, closes %t", name, a.Status, a.Body, a.Closes)
		}
	}
	s.Ran(0)
}

// R50: a stream of which a layer outside, or the scope function, consumed a part is
// refused.
func TestR50ConsumedStreamsAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, options{fiber: fiber.Config{StreamRequestBody: true}, scope: func(c *fiber.Ctx) (string, error) {
		_ = json.NewDecoder(c.Context().RequestBodyStream()).Decode(new(any))
		return "tenant", nil
	}}, handle(echo))
	for _, size := range []int{100, 513, 1537} { // the decoder leaves the last byte of the latter two
		body := `"` + strings.Repeat("x", size-3) + "\"\n"
		for _, raw := range []string{harness.Request(body, harness.Key("k"), "Content-Type: application/json"), chunked([]string{body}, nil, harness.Key("k"), "Content-Type: application/json")} {
			if a := s.Do(raw); a.Status != 400 || !strings.Contains(a.Body, "request-invalid") {
				t.Errorf("%d bytes: %d %s", size, a.Status, a.Body)
			}
		}
	}
	s.Ran(0)
}

// R50: a body in memory that a layer outside took away is refused, and the log says so.
func TestR50ConsumedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	s := serve(t, options{guard: protocol.Config{Engine: reprise.Config{Log: slog.New(slog.NewTextHandler(&lines, nil)), MaxRun: -1}}}, handle(echo, func(c *fiber.Ctx) error {
		c.Request().ResetBody()
		return c.Next()
	}))
	for range 2 {
		if a := s.Post("k"); a.Status != 400 || !strings.Contains(a.Body, "request-invalid") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	s.Ran(0)
	if text := lines.String(); strings.Count(text, "read the body and did not put it back") != 1 {
		t.Errorf("logged\n%s", text)
	}
}

// form is a multipart request whose boundary is its own.
func form(boundary string, lines []string, parts ...string) string {
	var b strings.Builder
	for part := range slices.Chunk(parts, 2) {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n", boundary, part[0], part[len(part)-1])
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return harness.Request(b.String(), append(lines, "Content-Type: multipart/form-data; boundary="+boundary)...)
}

func TestFormsThatAreNotParsedInAdvanceReachTheHandlerAsBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, options{fiber: fiber.Config{DisablePreParseMultipartForm: true}}, handle(echo))
	raw := form("x", []string{harness.Key("k")}, `name="b"`, "2", `name="a"`, "1")
	if first := s.Twice(raw); !strings.HasSuffix(raw, first.Body) || first.Body == "" {
		t.Errorf("the handler sees %q", first.Body)
	}
}

func TestR26FormsParsedInAdvanceAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, options{guard: protocol.Config{Limits: protocol.Limits{RequestBody: 1000}}}, handle(func(*fiber.Ctx) error { return nil }))
	a := s.Do(form("x", []string{harness.Key("k")}, `name="a"; filename="f"`, strings.Repeat("x", 1001)))
	a.Want(t, 413, "request-too-large")
	s.Ran(0)
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
			a := s.Do(chunked([]string{"body"}, tc.trailers, append(tc.lines, harness.Key("k"))...))
			if !a.Closes { // newer releases of fasthttp refuse some trailers
				a.Want(t, 403, "scope-missing")
			}
			if runs := s.Runs.Load(); runs > 0 {
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
