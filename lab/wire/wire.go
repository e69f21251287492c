package wire

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Run sends an adapter malformed, slow and hostile requests. It measures memory, so the
// test must not run beside others.
func Run(t *testing.T, adapter string, build func(*testapp.App) testapp.Server) {
	t.Helper()
	RunOn(t, adapter, testapp.InTest(build))
}

// RunOn does so with the server that serve starts.
func RunOn(t *testing.T, name string, serve func(testing.TB, adaptertest.Options) (addr string)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, server)
	}{
		{"MalformedRequests", malformedRequests},
		{"SlowSendersTakeWhatTheySent", slowSendersTakeWhatTheySent},
		{"UnreadAnswersHoldNothingUp", unreadAnswersHoldNothingUp},
		{"PanicsAreNoticed", panicsAreNoticed},
		{"LogsHaveNothingOfRequests", logsHaveNothingOfRequests},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, server{name, serve}) })
	}
}

// server is the native server of an adapter.
type server struct {
	name  string
	serve func(testing.TB, adaptertest.Options) (addr string)
}

var (
	count = flag.Int("wire.requests", 2000, "streams for each adapter that have a malformed request which must not run; make wire has 100,000")
	seed  = flag.Uint64("wire.seed", 1, "seed of the requests")
)

// patience is how long a response may take.
const patience = time.Minute

// tolerances has, for each server, the defects that it resolves before any handler, with
// the reason. Such a request may run, once, and so may the next one on the connection.
var tolerances = map[string]map[defect]string{
	"nethttp": netHTTP, "gin": netHTTP, "echo": netHTTP, "echo5": netHTTP, "proxy": netHTTP,
	"fiber": fastHTTP, "fiber3": fastHTTP,
}

// fastHTTP are those of every adapter on fasthttp.
var fastHTTP = map[defect]string{
	requestLine: "fasthttp skips empty lines in front of a request (RFC 9112, section 2.2), and takes any minor version and any byte in a path",
	bareLF:      "a key in front of it is refused; one behind the end of the section that fasthttp finds there is not seen",
	badChunk:    "fasthttp before 1.70 skips what follows the size of a chunk, and takes a bare LF; every release takes spaces there",
	badTrailer:  "fasthttp before 1.70 needs no end of the trailer section, and does not check its fields",
}

var netHTTP = map[defect]string{
	requestLine: "net/http skips an empty line in front of a request (RFC 9112, section 2.2), and takes any minor version and any byte in a path",
	bareLF:      "net/http takes LF for a line end (RFC 9112, section 2.2)",
	folded:      "net/http joins folded lines (RFC 9112, section 5.2)",
	both:        "net/http ignores the length (RFC 9112, section 6.1)",
	coding10:    "net/http ignores the coding",
	equalLength: "net/http takes equal lengths for one (RFC 9110, section 8.6)",
	badChunk:    "net/http takes LF for the end of a chunk's line",
}

// silences has the servers that close a connection without a response where a body in
// chunks ends early, with the reason. Answers to requests before it are lost, too, if all
// came in one piece: they wait to be sent together. A panic is answered with 500 there.
var silences = map[string]string{"fiber": silence, "fiber3": silence}

const silence = "fasthttp takes the end of the connection between two chunks for a client that left"

// cancels has the servers that answer 502, or 503 before the request was sent on, when a
// client ends its side of the connection while a request without a key runs, with the
// reason. Some lines that the oracle refuses end the header for them, in front of the
// key.
var cancels = map[string]string{"proxy": "net/http takes the end of the client's side for a client that left, and a reverse proxy cancels its request then"}

// endsBetweenChunks reports whether a stream ends behind a header section with a coding,
// for any first line: fasthttp reads some lines that the oracle does not.
func endsBetweenChunks(stream []byte) bool {
	head, ends := bytes.CutSuffix(bytes.ToLower(stream), []byte("\r\n\r\n"))
	last := head[bytes.LastIndex(head, []byte("\r\n\r\n"))+1:]
	return ends && bytes.Contains(last, []byte("\ntransfer-encoding:"))
}

// countingStore counts claims.
type countingStore struct {
	store.Store

	claims atomic.Int64
}

func (s *countingStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, r)
}

// Unwrap lets the engine find the abilities of the store.
func (s *countingStore) Unwrap() store.Store { return s.Store }

// sample is how many streams are made for each that is sent, of those without a defect,
// or without one that the server does not resolve.
const sample = 8

// malformedRequests sends generated requests until enough of them were malformed
// and none of these ran.
func malformedRequests(t *testing.T, adapter server) {
	t.Helper()
	if _, known := tolerances[adapter.name]; !known {
		t.Fatalf("what %s resolves before any handler is not listed", adapter.name)
	}
	t.Logf("seed %d", *seed)
	s := hostile(t, adapter, memstore.New(), adaptertest.Options{})
	s.begin()
	g := generator{rand.New(rand.NewPCG(*seed, 0))}
	for i := 0; s.malformed < *count; i++ {
		stream := g.stream(opOf('m', i), opOf('h', i))
		read := readAll(stream)
		if _, malformed := s.sort(read); !malformed && g.IntN(sample) > 0 {
			continue
		}
		s.try(i, stream, read)
		if s.heap == 0 && s.malformed >= *count/4 {
			s.measure()
		}
		if s.sent%remembered == 0 {
			s.forget()
		}
	}
	s.report()
}

// panicsAreNoticed breaks the responses to malformed keys. Servers of net/http panic
// inside the middleware at a status of two digits; Fiber sends it, which no client reads
// as a response. Every stream with such a key is one failure, and no other stream is.
func panicsAreNoticed(t *testing.T, adapter server) {
	t.Helper()
	t.Parallel()
	broken := protocol.Config{Problems: protocol.ProblemFormat{Write: func(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
		if p.Code == protocol.CodeKeyInvalid {
			return protocol.Response{Status: 99}
		}
		return protocol.Response{}
	}}}
	const (
		sound = "POST /t/%[1]s HTTP/1.1\r\nHost: test\r\nIdempotency-Key: %[1]s\r\nContent-Length: 0\r\n\r\n"
		bad   = "POST /t/%[2]s HTTP/1.1\r\nHost: test\r\nIdempotency-Key: a b\r\nContent-Length: 0\r\n\r\n"
	)
	s := hostile(t, adapter, memstore.New(), adaptertest.Options{Guard: broken})
	for i, c := range []struct {
		stream   string
		failures int
	}{{sound, 0}, {bad, 1}, {sound + bad, 1}, {bad + sound, 1}} {
		before := s.wrong
		stream := fmt.Appendf(nil, c.stream, opOf('m', i), opOf('h', i))
		s.try(i, stream, readAll(stream))
		if got := s.wrong - before; got != c.failures {
			t.Errorf("%d failures, want %d, of %q: %q", got, c.failures, c.stream, s.failures)
		}
	}
}

// opOf names an operation of a stream: the request itself, or the one that is hidden in
// it. A byte that is spoiled does not make it the name of another.
func opOf(kind byte, i int) string {
	return fmt.Sprintf("%c%d-%08x", kind, i, crc32.ChecksumIEEE(fmt.Appendf(nil, "%c%d", kind, i)))
}

// subject is a server that gets malformed requests.
type subject struct {
	t         *testing.T
	addr      string
	store     *countingStore
	records   *memstore.Store // the store behind the counts
	queries   net.Conn        // nil before the first of them
	answers   *bufio.Reader   // of queries
	tolerated map[defect]string
	silent    bool // see silences
	cancels   bool // see cancels

	sent, ran, wrong int
	malformed        int      // streams of those sent: see sort
	failures         []string // the first of those that are wrong
	goroutines       int      // before the first stream
	heap             uint64   // after a quarter
	before           int      // runs, likewise
}

// sort reports whether a stream needs a tolerance, and whether it is malformed: it needs
// none, and a request in it has a defect or a bad key and must not run. A request with a
// defect that has no key, or is of a method that has none, passes through the middleware
// as it is.
func (s *subject) sort(read []request) (tolerated, malformed bool) {
	last := read[len(read)-1]
	if _, tolerated = s.tolerated[last.defect]; tolerated || last.defect != none && last.whole && !last.keyed() {
		return true, false
	}
	return false, slices.ContainsFunc(read, func(r request) bool { return !r.runs() })
}

// try sends one stream and compares the requests that ran with those that the oracle
// allows.
func (s *subject) try(i int, stream []byte, read []request) {
	s.t.Helper()
	before := s.store.claims.Load()
	answers := s.send(stream)
	s.sent++
	tolerated, malformed := s.sort(read)
	if malformed {
		s.malformed++
	}
	ops := []string{opOf('m', i), opOf('h', i)}
	for _, r := range read {
		if r.op != "" && !slices.Contains(ops, r.op) {
			ops = append(ops, r.op)
		}
	}
	counts := s.executionsOf(ops)
	allowedClaims, moreClaims := 0, 0
	for k, op := range ops {
		must, may := allowed(read, op)
		if slices.ContainsFunc(answers, func(a reply) bool { return s.cancelled(read, a) }) {
			must = 0
		}
		allowedClaims += may
		more := 0
		if tolerated {
			more = 1
			moreClaims += 2 // and the next request may be sent twice, so that it is replayed
		}
		ran := counts[k]
		s.ran += ran
		if ran > may+more || ran < must {
			s.fail("%s ran %d times, want %d to %d; the oracle reads %+v, answers %v", stream, op, ran, must, may+more, read, answers)
		}
	}
	claims := int(s.store.claims.Load() - before)
	if most := allowedClaims + moreClaims; claims > most {
		s.fail("%d claims, want at most %d; the oracle reads %+v, answers %v", stream, claims, most, read, answers)
	}
	s.check(stream, read, answers)
}

// allowed returns how often an operation must run, and how often it may, without any
// tolerance.
func allowed(read []request, op string) (must, may int) {
	for _, r := range read {
		if r.op == op && r.runs() {
			may++
			own := !r.keyed() || r.keys[0] == op // another stream may have had one of the other keys
			if len(read) == 1 && !r.odd && own {
				must++
			}
		}
	}
	return must, may
}

// check compares the responses with the requests that the oracle read. Every request
// whose header section has an end gets one, unless an earlier response closed the
// connection: a server of net/http closes it after a panic.
func (s *subject) check(stream []byte, read []request, answers []reply) {
	s.t.Helper()
	for _, a := range answers {
		if s.cancelled(read, a) {
			continue
		}
		if a.status >= 500 && a.status != http.StatusNotImplemented && a.status != http.StatusHTTPVersionNotSupported {
			s.fail("answered %d; the oracle reads %+v", stream, a.status, read)
		}
	}
	for i, r := range read {
		switch {
		case !r.whole:
			return
		case s.silent && i >= len(answers) && (r.coded && r.defect != none || endsBetweenChunks(stream)):
			return
		case i >= len(answers):
			s.fail("the request for %s has no answer; the oracle reads %+v, answers %v", stream, r.op, read, answers)
			return
		case answers[i].closes:
			return
		}
	}
}

// cancelled reports whether an answer may be that of a request that was cancelled before
// or after it ran: see cancels.
func (s *subject) cancelled(read []request, a reply) bool {
	unkeyed := func(r request) bool { return !r.keyed() || r.defect != none }
	return s.cancels && (a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable) && slices.ContainsFunc(read, unkeyed)
}

// mostFailures is how many failures are shown.
const mostFailures = 20

func (s *subject) fail(format string, stream []byte, args ...any) {
	s.t.Helper()
	if s.wrong++; s.wrong <= mostFailures {
		s.failures = append(s.failures, fmt.Sprintf(format+"\n\tof %.1500q", append(args, stream)...))
	}
}
