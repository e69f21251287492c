package adaptertest

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// headSize is how much of a body Config.Keep.Decide sees, in bytes.
const headSize = 4 << 10

var replayCases = []testCase{
	{
		conformance.Case{ID: "R12c", Rule: "Neither a replay nor the start of the body that a policy decides by depends on how the handler wrote it, whatever the bytes.", Source: "trap: io.Copy and ReaderFrom go past a capture"},
		func(e *env) {
			var head atomic.Value // the start of the body that the policy saw last
			decide := func(e protocol.Ending) protocol.Decision {
				head.Store(string(e.Head))
				return protocol.ByPreset
			}
			srv := e.serve(Options{Guard: protocol.Config{Keep: protocol.Keeping{Decide: decide}}})
			for i, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
				for _, size := range []int{1, headSize + 1, 70_000} {
					for _, status := range []int{0, 200} {
						c := e.post(Program{Status: status, BodySize: size, Write: mode, Headers: []Pair{{"Content-Type", "x/y"}}}).freshKey()
						first := srv.run(c)
						if first.body != string(PatternBody(size)) {
							srv.Errorf("%s of %d bytes: the first answer has %d", mode, size, len(first.body))
						}
						if got, want := head.Load(), first.body[:min(size, headSize)]; got != want {
							srv.Errorf("%s of %d bytes: the policy saw %.40q, want %.40q of %d bytes", mode, size, got, want, len(want))
						}
						srv.replays(c, first)
					}
				}
				srv.ran(6 * (i + 1))
			}
		},
	},
	{
		conformance.Case{ID: "R15", Rule: "A replay has one marker and a Date of its own, and is whole whatever Range and conditions the retry has.", Source: "profile, RFC 9110 6.6.1, 13, 14"},
		func(e *env) {
			srv := e.serve(Options{})
			p := created
			p.Headers = []Pair{{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"ETag", `"v1"`}}
			c := e.post(p)
			first := srv.run(c)
			again := srv.replays(c.with("Range", "bytes=0-3").with("If-None-Match", `"v1"`), first) // demands one mark
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
