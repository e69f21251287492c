package adaptertest

import (
	"net/http"
	"slices"
	"time"

	"github.com/reprise-go/reprise/conformance"
)

var replayCases = []testCase{
	{
		conformance.Case{ID: "R11a", Rule: "The first request runs the handler once, and its status, fields and body are not modified.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			p := Program{Status: 207, Headers: []Pair{{"X-One", "1"}, {"X-Two", "a"}, {"X-Two", "b"}, {"Content-Type", "text/x-own"}}, Body: "as it is"}
			plain := srv.run(e.post(p).withKeys())
			keyed := srv.run(e.post(p))
			if keyed.status != 207 || keyed.body != "as it is" || !slices.Equal(keyed.values("X-Two"), []string{"a", "b"}) {
				srv.Errorf("answered %v", keyed)
			}
			for _, name := range []string{"X-One", "X-Two", "Content-Type", "Content-Length", "Cache-Control", "Vary"} {
				if got, want := keyed.values(name), plain.values(name); !slices.Equal(got, want) {
					srv.Errorf("%s is %q with a key and %q without", name, got, want)
				}
			}
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R12a", Rule: "A retry gets the same body, byte for byte, whatever the bytes.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			bodies := map[string][]byte{
				"every byte": PatternBody(256), "NUL": {0}, "CRLF": []byte("\r\n0\r\n\r\n"), "no UTF-8": {0xff, 0xfe, 0x80}, "large": PatternBody(1_000_000),
			}
			for name, body := range inOrder(bodies) {
				c := e.post(Program{Status: 200, Headers: []Pair{{"Content-Type", "application/octet-stream"}}, BodyBase64: body}).freshKey()
				if len(body) > 1000 { // more than a header holds
					c = c.does(Program{Status: 200, Headers: []Pair{{"Content-Type", "application/octet-stream"}}, BodySize: len(body)})
				}
				first := srv.run(c)
				if first.body != string(body) {
					srv.Errorf("%s: the first answer has %d bytes, want %d", name, len(first.body), len(body))
				}
				srv.replays(c, first)
			}
			srv.ran(len(bodies))
		},
	},
	{
		conformance.Case{ID: "R12c", Rule: "A replay does not depend on how the handler wrote its body.", Source: "trap: io.Copy and ReaderFrom go past a capture"},
		func(e *env) {
			srv := e.serve(Options{})
			for i, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
				for _, size := range []int{1, 600, 100_000} {
					for _, status := range []int{0, 200} {
						c := e.post(Program{Status: status, BodySize: size, Write: mode, Headers: []Pair{{"Content-Type", "x/y"}}}).freshKey()
						first := srv.run(c)
						if first.body != string(PatternBody(size)) {
							srv.Errorf("%s of %d bytes: the first answer has %d", mode, size, len(first.body))
						}
						srv.replays(c, first)
					}
				}
				srv.ran(6 * (i + 1))
			}
		},
	},
	{
		conformance.Case{ID: "R15", Rule: "A replay has one marker and a Date of its own.", Source: "profile, RFC 9110 6.6.1"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Headers = []Pair{{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}}
			c := e.post(p)
			first := srv.run(c)
			again := srv.replays(c, first) // demands one mark
			dates := again.values("Date")
			if len(dates) != 1 {
				srv.Fatalf("the replay has the dates %q", dates)
			}
			date, err := http.ParseTime(dates[0])
			if err != nil || time.Since(date).Abs() > time.Hour {
				srv.Errorf("the replay is dated %q, %v", dates[0], err)
			}
		},
	},
	{
		conformance.Case{ID: "R16a", Rule: "A response without a body is replayed without one, and no media type is invented for it.", Source: "RFC 9110 15.3.5"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, status := range []int{0, 200, 201, 204, 205, 304, 404} {
				c := e.post(Program{Status: status}).freshKey()
				w := srv.dial()
				first := w.ask(c)
				srv.wantRun(first)
				if first.body != "" {
					srv.Errorf("the first answer has the body %q", first.body)
				}
				srv.wantReplay(w.ask(c), first) // its Content-Type included
			}
		},
	},
	{
		conformance.Case{ID: "R16b", Rule: "A replay has the media type of the first response, even if the framework guessed it or there is none.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, body := range []string{"plain", "<html><body>page</body></html>", `{"json":true}`, "\x89PNG\r\n\x1a\n", "%PDF-1.7"} {
				for _, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
					c := e.post(Program{Status: 200, BodyBase64: []byte(body), Write: mode}).freshKey()
					srv.replays(c, srv.run(c))
				}
			}
		},
	},
	{
		conformance.Case{ID: "R18c", Rule: "Range and conditional fields of a retry do not change a replay.", Source: "RFC 9110 13, 14"},
		func(e *env) {
			srv := e.serve(Options{})
			p := Program{Status: 200, Body: "0123456789", Headers: []Pair{{"ETag", `"v1"`}, {"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"}}}
			c := e.post(p)
			first := srv.run(c)
			for _, l := range []line{
				{"Range", "bytes=0-3"},
				{"If-None-Match", `"v1"`},
				{"If-None-Match", "*"},
				{"If-Match", `"v2"`},
				{"If-Modified-Since", "Mon, 07 Nov 1994 08:49:37 GMT"},
				{"If-Unmodified-Since", "Sat, 05 Nov 1994 08:49:37 GMT"},
				{"If-Range", `"v1"`},
			} {
				srv.replays(c.with(l.name, l.value), first)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R19", Rule: "Content-Encoding stays with the body that was stored.", Source: "trap: a compressed body replayed without its coding"},
		func(e *env) {
			srv := e.serve(Options{})
			compressed := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00" // "hello"
			p := Program{Status: 200, BodyBase64: []byte(compressed), Headers: []Pair{{"Content-Encoding", "gzip"}, {"Content-Type", "text/plain"}, {"Vary", "Accept-Encoding"}}}
			c := e.post(p).with("Accept-Encoding", "gzip")
			first := srv.run(c)
			for _, accept := range []string{"gzip", "identity", "br;q=1.0, *;q=0"} {
				again := srv.replays(e.post(p).with("Accept-Encoding", accept), first)
				if again.value("Content-Encoding") != "gzip" || again.body != compressed {
					srv.Errorf("replayed %v", again)
				}
			}
		},
	},
}
