package reprisefiber_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// echo answers with the body as the handler sees it.
func echo(c *fiber.Ctx) error { return c.Send(c.Request().Body()) }

// chunked is a request in chunks, with a trailer section.
func chunked(chunks []string, trailers []string, lines ...string) string {
	var raw strings.Builder
	raw.WriteString(rawRequest(append(lines, "Transfer-Encoding: chunked")...))
	for _, c := range chunks {
		fmt.Fprintf(&raw, "%x\r\n%s\r\n", len(c), c)
	}
	raw.WriteString("0\r\n")
	for _, t := range trailers {
		raw.WriteString(t + "\r\n")
	}
	return raw.String() + "\r\n"
}

func TestR7KeysInTrailersAreIgnored(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"behind a body": chunked([]string{"body"}, []string{key("k")}, "Trailer: Idempotency-Key"),
		"unannounced":   chunked([]string{"body"}, []string{key("k")}),
		"behind none":   chunked(nil, []string{key("k")}),
		"in lower case": rawRequest("transfer-Encoding:chunked") + "0\r\nidempotency-key: k\r\n\r\n",
	} {
		for _, stream := range []bool{false, true} {
			s := serve(t, options{fiber: fiber.Config{StreamRequestBody: stream}}, handle(echo))
			for range 2 {
				if a := s.do(t, raw); a.status != 200 || a.header.Get(replayed) != "" {
					t.Errorf("%s (stream %t): %d %s", name, stream, a.status, a.body)
				}
			}
			s.wantRuns(t, 2)
		}
	}
}

func TestR7KeysInTheHeaderCountBesideTrailers(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(echo))
	s.wantReplay(t, chunked([]string{"bo", "dy"}, []string{key("other")}, key("k")))
	s.wantReplay(t, chunked(nil, []string{key("other")}, "idempotency-key:empty"))
	s.wantRuns(t, 2)
}

func TestKeysThatAnOuterLayerSetsCount(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(echo, func(c *fiber.Ctx) error {
		c.Request().Header.Set("Idempotency-Key", c.Get("X-Message-Id"))
		return c.Next()
	}))
	s.wantReplay(t, request("", "X-Message-Id: m"))
	s.wantReplay(t, request("body", "X-Message-Id: n"))
	s.wantRuns(t, 2)
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
	first := s.wantReplay(t, request(pack(gzip.BestSpeed), key("k"), "Content-Encoding: gzip"))
	if first.body != "the same text" {
		t.Errorf("the handler decompresses %q", first.body)
	}
	other := s.do(t, request(pack(gzip.NoCompression), key("k"), "Content-Encoding: gzip"))
	other.want(t, 422, "key-reused")
}

func TestR47RefusedStreamsLeaveTheConnectionInStep(t *testing.T) {
	t.Parallel()
	s := serve(t, options{
		fiber: fiber.Config{StreamRequestBody: true}, guard: protocol.Config{Limits: protocol.Limits{RequestBody: 10_000}},
	}, handle(echo))
	for name, tc := range map[string]struct {
		raw    string
		status int
		closes bool
	}{
		"a bad key":          {raw: request(strings.Repeat("x", 100_000), key("ä")), status: 400},
		"a bad key, chunked": {raw: chunked([]string{strings.Repeat("x", 100_000)}, nil, key("ä")), status: 400},
		"too large":          {raw: request(strings.Repeat("x", 100_000), key("a")), status: 413},
		"too large, chunked": {raw: chunked([]string{strings.Repeat("x", 100_000)}, nil, key("b")), status: 413},
		"too large to drain": {raw: chunked([]string{strings.Repeat("x", 300_000)}, nil, key("c")), status: 413, closes: true},
		"too large to await": {raw: rawRequest(key("d"), "Content-Length: 1000000000") + strings.Repeat("x", 10_000), status: 413, closes: true},
	} {
		c := s.dial(t)
		c.send(t, tc.raw)
		a := c.receive(t)
		if a.status != tc.status || a.closes != tc.closes {
			t.Errorf("%s: %d %s, closes %t", name, a.status, a.body, a.closes)
		}
		if tc.closes {
			continue
		}
		c.send(t, request("next", key("next")))
		if a := c.receive(t); a.body != "next" {
			t.Errorf("%s: the next request gets %d %q", name, a.status, a.body)
		}
	}
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
		for _, raw := range []string{request(body, key("k"), "Content-Type: application/json"), chunked([]string{body}, nil, key("k"), "Content-Type: application/json")} {
			if a := s.do(t, raw); a.status != 400 || !strings.Contains(a.body, "request-invalid") {
				t.Errorf("%d bytes: %d %s", size, a.status, a.body)
			}
		}
	}
	s.wantRuns(t, 0)
}

// R50: a body in memory that a layer outside took away is refused, and the log says so.
func TestR50ConsumedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	s := serve(t, options{engine: reprise.Config{Log: slog.New(slog.NewTextHandler(&lines, nil)), MaxRun: -1}}, handle(echo, func(c *fiber.Ctx) error {
		c.Request().ResetBody()
		return c.Next()
	}))
	for range 2 {
		if a := s.do(t, request("body", key("k"))); a.status != 400 || !strings.Contains(a.body, "request-invalid") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	s.wantRuns(t, 0)
	if text := lines.String(); strings.Count(text, "read the body and did not put it back") != 1 {
		t.Errorf("logged\n%s", text)
	}
}

// For fasthttp a body is whole that lacks no more than the empty line after its last
// chunk, and a stream also one that breaks off between two chunks.
func TestR27BrokenBodiesDoNotRun(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		s := serve(t, options{fiber: fiber.Config{StreamRequestBody: stream}}, handle(echo))
		for i, raw := range []string{
			rawRequest(key("k"), "Transfer-Encoding: chunked"),
			rawRequest(key("k"), "Transfer-Encoding: chunked") + "4\r\nbody\r\n",
			rawRequest(key("k"), "Content-Length: 5") + "body",
			rawRequest(key("k"), "Content-Length: 20000") + strings.Repeat("x", 10_000),
			rawRequest(key("k"), "Transfer-Encoding: chunked") + "4\r\nbo",
			rawRequest(key("k"), "Transfer-Encoding: chunked") + "4\r\nbodyX\r\n0\r\n\r\n",
			rawRequest(key("k"), "Transfer-Encoding: chunked") + "no\r\nbody\r\n0\r\n\r\n",
			rawRequest(key("k"), "Transfer-Encoding: chunked") + "-1\r\n\r\n0\r\n\r\n",
		} {
			if stream && i < 2 {
				continue
			}
			c := s.dial(t)
			c.send(t, raw)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(c.r, nil)
			if err != nil {
				continue // closed without a response
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest || !resp.Close {
				t.Errorf("stream %t: %.120q is answered %d", stream, raw, resp.StatusCode)
			}
		}
		s.wantRuns(t, 0)
		if a := s.do(t, request("body", key("k"))); a.status != 200 || a.header.Get(replayed) != "" {
			t.Errorf("the first whole request is answered %d %s", a.status, a.body)
		}
	}
}

// form is a multipart request whose boundary is its own.
func form(boundary string, lines []string, parts ...string) string {
	var b strings.Builder
	for part := range slices.Chunk(parts, 2) {
		fmt.Fprintf(&b, "--%s\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n", boundary, part[0], part[len(part)-1])
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return request(b.String(), append(lines, "Content-Type: multipart/form-data; boundary="+boundary)...)
}

func TestR24FormsParsedInAdvanceAreComparedByTheirParts(t *testing.T) {
	t.Parallel()
	parts := []string{`name="a"`, "1", `name="b"`, "2", `name="c"`, "3", `name="d"; filename="f"`, "file", `name="a"`, "4"}
	for _, stream := range []bool{false, true} {
		s := serve(t, options{fiber: fiber.Config{StreamRequestBody: stream}}, handle(func(c *fiber.Ctx) error {
			file, err := c.FormFile("d")
			if err != nil {
				return err
			}
			return c.SendString(fmt.Sprint(c.FormValue("a"), c.FormValue("c"), file.Filename, file.Size))
		}))
		for range 20 { // fasthttp writes a form in the order of a map
			if a := s.do(t, form("x", []string{key("k")}, parts...)); a.body != "13f4" {
				t.Fatalf("stream %t: %d %s", stream, a.status, a.body)
			}
		}
		if a := s.do(t, form("another", []string{key("k")}, parts...)); a.header.Get(replayed) == "" {
			t.Errorf("another boundary: %d %s", a.status, a.body)
		}
		s.wantRuns(t, 1)
		for i := range parts {
			other := slices.Clone(parts)
			other[i] = strings.NewReplacer(`="a"`, `="e"`, `="b"`, `="e"`, `="c"`, `="e"`, `="f"`, `="e"`, "1", "0", "2", "0", "3", "0", "4", "0", "file", "life").Replace(other[i])
			a := s.do(t, form("x", []string{key("k")}, other...))
			a.want(t, 422, "key-reused")
		}
	}
}

func TestFormsThatAreNotParsedInAdvanceReachTheHandlerAsBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, options{fiber: fiber.Config{DisablePreParseMultipartForm: true}}, handle(echo))
	raw := form("x", []string{key("k")}, `name="b"`, "2", `name="a"`, "1")
	if first := s.wantReplay(t, raw); !strings.HasSuffix(raw, first.body) || first.body == "" {
		t.Errorf("the handler sees %q", first.body)
	}
}

func TestR26FormsParsedInAdvanceAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, options{guard: protocol.Config{Limits: protocol.Limits{RequestBody: 1000}}}, handle(func(*fiber.Ctx) error { return nil }))
	a := s.do(t, form("x", []string{key("k")}, `name="a"; filename="f"`, strings.Repeat("x", 1001)))
	a.want(t, 413, "request-too-large")
	s.wantRuns(t, 0)
}
