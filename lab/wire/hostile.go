package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// crowd is how many connections misbehave at once.
const crowd = 100

// A connection that waits may take so much, the client's end of it included.
const (
	perConnection      = 96 << 10
	goroutinesPerCrowd = 3 * crowd
	declared           = 1 << 20
)

// held is the memory that a server allocates for a body of which it has seen only the
// declared length, before any handler runs.
var held = map[string]int{"fiber": declared, "fiber3": declared}

// slowSendersTakeWhatTheySent opens keyed requests that declare a mebibyte and send a few
// bytes. They hold no record and no lease, and memory for the sent bytes; others are
// served during that time, and when the senders leave, no handler has run.
func slowSendersTakeWhatTheySent(t *testing.T, adapter server) {
	t.Helper()
	s := hostile(t, adapter, memstore.New(), adaptertest.Options{})
	heap, goroutines := settled(), runtime.NumGoroutine()
	var senders []net.Conn
	for i := range crowd {
		conn := s.dial()
		s.write(conn, fmt.Sprintf("POST /t/slow HTTP/1.1\r\nHost: test\r\nX-Test-Tenant: wire\r\nIdempotency-Key: slow-%d\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", i, declared))
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil { // the server wants the body
			t.Fatal(err)
		}
		s.write(conn, `{"amount":`)
		senders = append(senders, conn)
	}
	for range 3 { // a byte at a time
		for _, conn := range senders {
			s.write(conn, "1")
		}
	}
	s.serves("other", "POST /t/other HTTP/1.1\r\nHost: test\r\nX-Test-Tenant: wire\r\nIdempotency-Key: other\r\nContent-Length: 0\r\n\r\n")
	if grown, most := int64(inUse())-int64(heap), int64(crowd*(perConnection+held[adapter.name])); grown > most {
		t.Errorf("the heap has grown by %d KiB for %d senders, want at most %d", grown>>10, crowd, most>>10)
	} else {
		t.Logf("%d KiB for each sender", grown>>10/crowd)
	}
	if grown := runtime.NumGoroutine() - goroutines; grown > goroutinesPerCrowd {
		t.Errorf("%d more goroutines for %d senders", grown, crowd)
	}
	if n := s.store.claims.Load(); n != 1 {
		t.Errorf("%d claims, want that of the other request only", n)
	}
	for _, conn := range senders {
		_ = conn.Close()
	}
	s.goroutinesEnd(adapter, goroutines+crowd/2)
	if n := s.executions("slow"); n != 0 || s.store.claims.Load() != 1 {
		t.Errorf("%d requests without their bodies ran", n)
	}
}

// large is a response that does not fit the buffers of a connection without a reader, and
// listless is the number of clients that do not read it.
const (
	large    = 6 << 20
	listless = 16
)

// unreadAnswersHoldNothingUp lets clients send a request and never read the response,
// neither that of the handler nor replays: the response is recorded, and others are
// answered.
func unreadAnswersHoldNothingUp(t *testing.T, adapter server) {
	t.Helper()
	s := hostile(t, adapter, memstore.New(), adaptertest.Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 2 * large}}})
	wanted := fmt.Sprintf("POST /t/large HTTP/1.1\r\nHost: test\r\nX-Test-Tenant: wire\r\nIdempotency-Key: large\r\n"+
		"X-Test-Program: {\"status\":200,\"body_size\":%d}\r\nContent-Length: 0\r\n\r\n", large)
	deaf := []net.Conn{s.deaf()}
	s.write(deaf[0], wanted)
	labtest.Eventually(s.t, "the response is recorded", func() bool { return s.ask(wanted).replayed })
	heap, goroutines := settled(), runtime.NumGoroutine()
	for range listless {
		conn := s.deaf()
		s.write(conn, wanted)
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil { // of the replay, which is on its way
			t.Fatal(err)
		}
		deaf = append(deaf, conn)
	}
	if got := s.ask(wanted); !got.replayed || got.size != large {
		t.Errorf("beside clients that do not read: %+v", got)
	}
	s.serves("other", "POST /t/other HTTP/1.1\r\nHost: test\r\nX-Test-Tenant: wire\r\nIdempotency-Key: other\r\nContent-Length: 0\r\n\r\n")
	if grown, most := int64(inUse())-int64(heap), int64(listless*(perConnection+unread[adapter.name])); grown > most {
		t.Errorf("the heap has grown by %d KiB for %d replays that nobody reads, want at most %d", grown>>10, listless, most>>10)
	} else {
		t.Logf("%d KiB for each replay that nobody reads", grown>>10/listless)
	}
	if grown := runtime.NumGoroutine() - goroutines; grown > 3*listless {
		t.Errorf("%d more goroutines for %d replays", grown, listless)
	}
	for _, conn := range deaf {
		_ = conn.Close()
	}
	s.goroutinesEnd(adapter, goroutines+listless/2)
	if n := s.executions("large"); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// unread has how much of a replay a framework copies before it sends it.
var unread = map[string]int{"fiber": 2 * large, "fiber3": 2 * large}

// goroutinesEnd waits until most goroutines of closed connections have ended.
func (s *subject) goroutinesEnd(adapter server, most int) {
	s.t.Helper()
	if held[adapter.name] > 0 {
		return // fasthttp keeps them for ten seconds, for other connections
	}
	labtest.Eventually(s.t, "the goroutines of the connections end", func() bool { return runtime.NumGoroutine() < most })
}

// settled is inUse after the remains of earlier tests in pools are gone.
func settled() uint64 {
	inUse()
	return inUse()
}

// hostile serves an adapter for a test that misbehaves.
func hostile(t *testing.T, adapter server, store *memstore.Store, o adaptertest.Options) *subject {
	t.Helper()
	s := &subject{
		t: t, store: &countingStore{Store: store}, records: store,
		tolerated: tolerances[adapter.name], silent: silences[adapter.name] != "", cancels: cancels[adapter.name] != "",
	}
	o.Store = s.store
	s.addr = adapter.serve(t, o)
	return s
}

func (s *subject) dial() net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience * 3))
	return conn
}

// deaf returns a connection that takes few bytes, and reads none.
func (s *subject) deaf() net.Conn {
	s.t.Helper()
	conn := s.dial()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	return conn
}

func (s *subject) write(conn net.Conn, text string) {
	s.t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
}

// answered is a response.
type answered struct {
	status, size int
	replayed     bool // whole, and marked as a replay
}

// ask sends a request on a new connection and reads the response.
func (s *subject) ask(text string) answered {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close()
	s.write(conn, text)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	whole := err == nil // a busy machine may not read it within a write timeout
	return answered{status: res.StatusCode, size: int(n), replayed: whole && res.Header.Get(protocol.FieldReplayed) == "true"}
}

// serves demands that an operation runs and is answered.
func (s *subject) serves(op, text string) {
	s.t.Helper()
	if got := s.ask(text); got.status != 201 || s.executions(op) != 1 {
		s.t.Errorf("another request: %+v", got)
	}
}
