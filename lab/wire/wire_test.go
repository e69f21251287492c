package wire

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve"
)

var (
	count = flag.Int("wire.requests", 2000, "malformed requests for each adapter; a long run has 100,000")
	seed  = flag.Uint64("wire.seed", 1, "seed of the requests")
)

func TestMain(m *testing.M) { labtest.Main(m) }

// patience is how long an answer may take.
const patience = 10 * time.Second

// tolerances has, for each server, the defects that it resolves before any handler, with
// the reason. Such a request may run, once, and so may what follows it on the connection.
var tolerances = map[string]map[defect]string{
	"nethttp": netHTTP, "gin": netHTTP, "echo": netHTTP, "echo5": netHTTP,
	"fiber": {
		bareLF:     "a key in front of it is refused; one behind the end of the section that fasthttp finds there is not seen",
		badChunk:   "fasthttp before 1.70 skips what follows the size of a chunk, and takes a bare LF; every release takes spaces there",
		badTrailer: "fasthttp before 1.70 needs no end of the trailer section, and does not check its fields",
	},
}

var netHTTP = map[defect]string{
	bareLF:      "net/http takes LF for a line end (RFC 9112, section 2.2)",
	folded:      "net/http joins folded lines (RFC 9112, section 5.2)",
	both:        "net/http ignores the length (RFC 9112, section 6.1)",
	coding10:    "net/http ignores the coding",
	equalLength: "net/http takes equal lengths for one (RFC 9110, section 8.6)",
	badChunk:    "net/http takes LF for the end of a chunk's line",
}

// countingStore counts claims.
type countingStore struct {
	reprise.Store

	claims atomic.Int64
}

func (s *countingStore) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, r)
}

// Unwrap lets the engine find the abilities of the store.
func (s *countingStore) Unwrap() reprise.Store { return s.Store }

// TestMalformedRequests sends generated requests to every adapter.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	for _, adapter := range serve.Adapters() {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			tolerated, known := tolerances[adapter]
			if !known {
				t.Fatalf("what %s resolves before any handler is not listed", adapter)
			}
			s := &subject{t: t, store: &countingStore{Store: memstore.New()}, tolerated: tolerated, met: map[defect]int{}}
			s.addr = serve.Adapter(adapter)(t, adaptertest.Options{Store: s.store})
			t.Cleanup(s.client.CloseIdleConnections)
			g := generator{rand.New(rand.NewPCG(*seed, 0))}
			for i := range *count {
				s.try(i, g.stream(opOf('m', i), opOf('h', i)))
				if i == *count/4 {
					s.measure()
				}
			}
			s.report()
		})
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
	client    http.Client
	store     *countingStore
	tolerated map[defect]string

	sent, ran, wrong int
	met              map[defect]int // defects that were tolerated in fact
	heap             uint64         // after a quarter
	claims           int64          // likewise
}

// try sends one stream and compares what ran with what the oracle allows.
func (s *subject) try(i int, stream []byte) {
	s.t.Helper()
	claims := s.store.claims.Load()
	statuses := s.send(stream)
	s.sent++
	read := readAll(stream)
	last := read[len(read)-1]
	_, tolerated := s.tolerated[last.defect]
	unkeyed := !last.keyed() && last.defect != none // passes through as it is
	allowedClaims := int64(0)
	ops := []string{opOf('m', i), opOf('h', i)}
	for _, r := range read {
		if r.op != "" && !slices.Contains(ops, r.op) {
			ops = append(ops, r.op)
		}
	}
	for _, op := range ops {
		must, may := 0, 0
		for n, r := range read {
			if r.op == op && r.runs() {
				may++
				own := !r.keyed() || r.keys[0] == op // another stream may have had one of the other keys
				if n == 0 && len(read) == 1 && !r.odd && own {
					must++
				}
			}
		}
		strict := may
		allowedClaims += int64(may)
		if tolerated || unkeyed {
			may++
			allowedClaims += 2 // and what follows may be sent twice, so that it is replayed
		}
		got := s.executions(op)
		s.ran += got
		if got > may || got < must {
			s.fail("%s ran %d times, want %d to %d; the oracle reads %+v, answers %v", stream, op, got, must, may, read, statuses)
		}
		if got > strict {
			s.met[last.defect]++
		}
	}
	if got := s.store.claims.Load() - claims; got > allowedClaims {
		s.fail("%d claims, want at most %d; the oracle reads %+v, answers %v", stream, got, allowedClaims, read, statuses)
	}
	for _, status := range statuses {
		if status >= "500" && status != "501" && status != "505" {
			s.fail("answered %s", stream, status)
		}
	}
}

// mostFailures is how many failures are shown.
const mostFailures = 20

func (s *subject) fail(format string, stream []byte, args ...any) {
	s.t.Helper()
	if s.wrong++; s.wrong <= mostFailures {
		s.t.Errorf(format+"\n\tof %.1500q", append(args, stream)...)
	}
}

var statusLine = regexp.MustCompile(`HTTP/1\.[01] ([0-9]{3}) `)

// send sends a stream, ends it, and returns the statuses of all answers.
func (s *subject) send(stream []byte) (statuses []string) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write(stream) // the server may have closed the connection before
	_ = conn.(*net.TCPConn).CloseWrite()
	answers, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		s.fail("no end of the connection", stream)
	}
	for _, m := range statusLine.FindAllSubmatch(answers, -1) {
		statuses = append(statuses, string(m[1]))
	}
	return statuses
}

// executions asks how often an operation ran.
func (s *subject) executions(op string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/executions/"+op, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Executions int `json:"executions"`
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		s.t.Fatal(err)
	}
	return got.Executions
}

// measure notes what is in use after a quarter of the requests.
func (s *subject) measure() { s.heap, s.claims = inUse(), s.store.claims.Load() }

// What may be in use: a record for each claim, and what the adapters beside this one do.
const (
	perClaim = 4 << 10
	others   = 32 << 20
)

func (s *subject) report() {
	s.t.Helper()
	grown, stored := int64(inUse())-int64(s.heap), s.store.claims.Load()-s.claims
	if grown > others+stored*perClaim {
		s.t.Errorf("the heap has grown by %d KiB for %d claims", grown>>10, stored)
	}
	s.t.Logf("%d streams, %d runs, %d claims, heap %+d KiB; %d failures; tolerated in fact: %v",
		s.sent, s.ran, s.store.claims.Load(), grown>>10, s.wrong, s.met)
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
