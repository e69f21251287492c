package adaptertest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// announcing is a policy that adds a field to responses.
var announcing = protocol.Config{Expires: true, Retention: long}

var headerCases = []testCase{
	{
		conformance.Case{ID: "R13a", Rule: "Fields are replayed with their values, multiplicity and order, the one that the policy adds among them.", Source: "RFC 9110 5.3, 5.5"},
		func(e *env) {
			srv := e.serve(Options{Guard: announcing})
			p := created
			p.Headers = []Pair{
				{"X-Many", "b"},
				{"Link", "</2>; rel=next"},
				{"X-Many", "a"},
				{"X-Many", "b"},
				{"Link", "</1>; rel=prev"},
				{"X-Many", "c, d"},
				{"Warning", `199 - "x"`},
				{"Cache-Control", "no-store"},
				{"Vary", "Accept"},
				{"Vary", "Origin"},
				{"X-Empty", ""},
				{"X-Long", strings.Repeat("0123456789", 400)},
				{"X-Quoted", `"a\"b", c;d="e"`},
				{"X-Utf8", "gr\u00fc\u00df"},
				{"x-lower-case", "v"},
			}
			c := e.post(p)
			again := srv.replays(c, srv.run(c))
			for _, h := range p.Headers {
				var want []string
				for _, other := range p.Headers {
					if other[0] == h[0] {
						want = append(want, other[1])
					}
				}
				if got := again.values(h[0]); !slices.Equal(got, want) {
					srv.Errorf("replayed %s: %.60q, want %.60q", h[0], got, want)
				}
			}
			if a := srv.expiry(again); time.Until(a) < long-time.Minute || time.Until(a) > long+time.Minute {
				srv.Errorf("the replay expires at %v, want in %v", a, long)
			}
			released := e.post(Program{Status: 429}).freshKey()
			if a := srv.run(released); len(a.values(protocol.FieldExpires)) > 0 {
				srv.Errorf("a response that is not kept expires: %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R13b", Rule: "Fields that outer layers set belong to each response, a problem too: they are neither replayed nor duplicated.", Source: "trap: two X-Request-Id on a replay"},
		func(e *env) {
			srv := e.serve(Options{Outer: true})
			c := e.post(Program{Status: 201, Body: "outer", Headers: []Pair{{"X-Inner", "kept"}}})
			first := srv.run(c.with("Origin", "https://one.test"))
			again := srv.replays(c.with("Origin", "https://two.test"), first)
			for i, a := range []answer{first, again} {
				origin := []string{"https://one.test", "https://two.test"}[i]
				if got := a.values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{origin}) {
					srv.Errorf("answer %d has Access-Control-Allow-Origin %q, want %q", i+1, got, origin)
				}
				if ids, cookies := a.values("X-Request-Id"), a.values("Set-Cookie"); len(ids) != 1 || len(cookies) != 1 {
					srv.Errorf("answer %d has X-Request-Id %q and Set-Cookie %q, want one of each", i+1, ids, cookies)
				}
			}
			if first.value("X-Request-Id") == again.value("X-Request-Id") {
				srv.Errorf("the replay has the X-Request-Id %q of the first answer", again.value("X-Request-Id"))
			}
			for _, a := range []answer{srv.refuses(c.withBody("another"), protocol.CodeKeyReused), srv.refuses(c.withKeys("not a key"), protocol.CodeKeyInvalid)} {
				if got := a.values("X-Request-Id"); len(got) != 1 {
					srv.Errorf("a problem has X-Request-Id %q, want one", got)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R13g", Rule: "A field of an outer layer that the handler removed is absent from its replay too.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Outer: true})
			p := created
			p.Remove = []string{"X-Powered-By", "X-Request-Id"}
			c := e.post(p)
			first := srv.run(c)
			for i, a := range []answer{first, srv.replays(c, first)} {
				if len(a.values("X-Powered-By"))+len(a.values("X-Request-Id")) > 0 || len(a.values("Set-Cookie")) != 1 {
					srv.Errorf("answer %d is %v", i+1, a)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R13h", Rule: "A field value with CR, LF or NUL does not end its line, and is replayed as it was sent.", Source: "RFC 9110 5.5"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Headers = append(slices.Clip(p.Headers), Pair{"X-Lines", "a\r\nX-Hidden: b"}, Pair{"X-Nul", "a\x00b"}, Pair{"X-Mixed", "a\nb\rc"})
			c := e.post(p)
			w := srv.dial()
			first, again := w.ask(c), w.ask(c)
			srv.wantRun(first)
			srv.wantReplay(again, first)
			if len(first.values("X-Hidden")) > 0 || len(first.values("X-Lines")) != 1 {
				srv.Errorf("the first response is %v", first)
			}
		},
	},
	{
		conformance.Case{ID: "R14b", Rule: "Neither Set-Cookie is replayed, nor what Connection names, which belongs to one hop.", Source: "trap: Set-Cookie replayed to whoever retries; RFC 9110 7.6.1"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Headers = append(slices.Clip(p.Headers), Pair{"Set-Cookie", "session=secret; HttpOnly"}, Pair{"Set-Cookie", "b=2"})
			p.Headers = append(p.Headers, Pair{"Connection", "X-Hop"}, Pair{"X-Hop", "1"}, Pair{"X-Stays", "1"})
			c := e.post(p)
			first, again := srv.run(c), srv.send(c)
			if got := first.values("Set-Cookie"); len(got) != 2 {
				srv.Errorf("the first answer has the cookies %q", got)
			}
			if len(again.values("Set-Cookie"))+len(again.values("X-Hop")) > 0 || strings.Contains(again.value("Connection"), "X-Hop") || again.value("X-Stays") != "1" {
				srv.Errorf("replayed %v", again)
			}
			if again.value(protocol.FieldReplayed) != "true" || again.status != first.status || again.body != first.body {
				srv.Errorf("replayed %v of %v", again, first)
			}
		},
	},
	{
		conformance.Case{ID: "R14f", Rule: "A replay declares the length of its body, whatever the framing of the first response.", Source: "RFC 9110 8.6"},
		func(e *env) {
			srv := e.serve(Options{})
			large := Program{Status: 200, BodySize: 100_000}
			for _, p := range []Program{created, large, streamed} {
				c := e.post(p).freshKey()
				w := srv.dial()
				first := w.ask(c)
				srv.wantRun(first)
				again := w.ask(c)
				srv.wantReplay(again, first)
				if got, want := again.values("Content-Length"), strconv.Itoa(len(first.body)); !slices.Equal(got, []string{want}) {
					srv.Errorf("the replay declares %q, want %s", got, want)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R17a", Rule: "Informational responses are sent at once, before the final response is recorded.", Source: "RFC 9110 15.2"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Informational = []Interim{{Status: 103, Headers: []Pair{{"Link", "</style.css>; rel=preload"}}}, {Status: 102}}
			gate := make(chan struct{})
			srv.faults.Next(faultstore.Complete, faultstore.Hold(gate))
			w := srv.dial()
			w.write(e.post(p).bytes())
			w.await("HTTP/1.1 103 Early Hints\r\n")
			w.await("HTTP/1.1 102 Processing\r\n")
			close(gate)
			w.await("HTTP/1.1 201 Created\r\n")
		},
	},
	{
		conformance.Case{ID: "R17b", Rule: "An informational status is never recorded, and its fields are not part of the final response.", Source: "trap: WriteHeader(103) taken as final"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Informational = []Interim{{Status: 103, Headers: []Pair{{"Link", "</style.css>; rel=preload"}}}, {Status: 103}}
			c := e.post(p)
			w := srv.dial()
			first := w.ask(c)
			srv.wantRun(first)
			if first.status != 201 || first.body != p.Body || len(first.values("Link")) > 0 {
				srv.Errorf("the first answer is %v", first)
			}
			again := w.ask(c)
			srv.wantReplay(again, first)
			if len(again.values("Link")) > 0 {
				srv.Errorf("the replay has the field of an informational answer: %v", again)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R17d", Rule: "Trailers of a kept response are replayed as trailers, and never become header fields.", Source: "RFC 9110 6.5"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, p := range []Program{created, streamed} {
				p.Trailers = []Pair{{"X-Checksum", "abc"}, {"X-Signature", "def"}}
				c := e.post(p).freshKey()
				w := srv.dial()
				first, again := w.ask(c), w.ask(c)
				srv.wantRun(first)
				if got := valuesOf(first.trailers, "X-Checksum"); len(p.Chunks) == 0 && !slices.Equal(got, []string{"abc"}) {
					srv.Errorf("the first answer has the trailers %q", first.trailers)
				}
				if again.status == 409 && len(p.Chunks) > 0 { // a framework that cannot send them again keeps no such response
					srv.wantProblem(again, c, protocol.CodeResultUnavailable)
					continue
				}
				srv.wantReplay(again, first)
				older := srv.dial()
				older.write(strings.Replace(c.bytes(), "HTTP/1.1", "HTTP/1.0", 1))
				old := older.read()
				srv.wantReplay(old, first)
				if len(old.values("Transfer-Encoding"))+len(old.values("Trailer"))+len(old.trailers) > 0 {
					srv.Errorf("a replay in HTTP/1.0 has trailers: %v, %v", old, old.trailers)
				}
				for _, name := range []string{"X-Checksum", "X-Signature"} {
					got, want := valuesOf(again.trailers, name), valuesOf(first.trailers, name)
					if strings.Join(got, ", ") != strings.Join(want, ", ") { // an empty trailer counts as absent
						srv.Errorf("the replay has the trailer %s %q, the first response %q", name, got, want)
					}
					if len(first.values(name))+len(again.values(name))+len(old.values(name)) > 0 {
						srv.Errorf("%s is a field of the header: %v, %v", name, first, again)
					}
				}
			}
		},
	},
}

// expiry returns until when a response says that it is replayed.
func (srv *server) expiry(a answer) time.Time {
	srv.Helper()
	seconds, dated := strings.CutPrefix(a.value(protocol.FieldExpires), "@")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if !dated || err != nil {
		srv.Fatalf("%s is %q, want a Date of RFC 9651: %v", protocol.FieldExpires, a.value(protocol.FieldExpires), a)
	}
	return time.Unix(at, 0)
}
