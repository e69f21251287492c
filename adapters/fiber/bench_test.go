package reprisefiber_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
)

// load is one keep-alive connection that sends the same request again and again, without
// allocating.
type load struct {
	conn    *conn
	request []byte
	serial  []byte // the part of the request that makes its key a new one; none where it is always the same
	next    uint64
	answer  []byte
}

// newLoad returns a load of requests of 64 bytes to a handler that responds with 256
// bytes: without the middleware, without a key, with a new key each time, or always with
// the same.
func newLoad(tb testing.TB, kind string) *load {
	tb.Helper()
	body := []byte(strings.Repeat("x", 256))
	s := serve(tb, options{}, func(s *service) {
		h := func(c *fiber.Ctx) error {
			c.Set("Content-Type", "application/json")
			return c.Status(201).Send(body)
		}
		if kind == "bare" {
			s.app.Post("/x", h)
		} else {
			s.app.Post("/x", s.protect, h)
		}
	})
	l := &load{conn: s.dial(tb)}
	l.request = []byte(request(strings.Repeat("y", 64), "Content-Type: application/json", key("0000000000000000-8a1f-4c5e")))
	if kind == "unkeyed" {
		l.request = []byte(request(strings.Repeat("y", 64), "Content-Type: application/json"))
	}
	if kind == "new" {
		at := bytes.Index(l.request, []byte("0000000000000000"))
		l.serial = l.request[at : at+16]
	}
	l.conn.send(tb, string(l.request))
	first := l.conn.receive(tb) // learns how long the responses are
	if first.status != 201 {
		tb.Fatalf("got %d %s", first.status, first.body)
	}
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		tb.Fatal(err)
	}
	l.answer = make([]byte, 4096)
	return l
}

// once sends a request and reads its response.
func (l *load) once(tb testing.TB) {
	if l.serial != nil {
		l.next++
		digits := strconv.AppendUint(l.answer[:0], l.next, 10)
		copy(l.serial[len(l.serial)-len(digits):], digits)
	}
	if _, err := l.conn.Write(l.request); err != nil {
		tb.Fatal(err)
	}
	n := 0
	for {
		m, err := l.conn.Conn.Read(l.answer[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
		if end := bytes.Index(l.answer[:n], []byte("\r\n\r\n")); end >= 0 && n-end-4 == 256 {
			break
		}
	}
	if !bytes.HasPrefix(l.answer, []byte("HTTP/1.1 201 ")) {
		tb.Fatalf("got %s", l.answer[:n])
	}
}

// TestP5Allocations counts the allocations of a request with its handler; the client has
// none. A new key costs the attempt, the exchange, the record and its payload. The
// requests before it fill the pools and most of the store's tables.
func TestP5Allocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools are not what they are under the race detector")
	}
	for kind, most := range map[string]float64{"bare": 0, "unkeyed": 0, "new": 4, "replay": 0} {
		l := newLoad(t, kind)
		for range 4000 {
			l.once(t)
		}
		if got := testing.AllocsPerRun(500, func() { l.once(t) }); got > most {
			t.Errorf("%s: %v allocations, want at most %v", kind, got, most)
		} else {
			t.Logf("%s: %v allocations", kind, got)
		}
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, kind := range []string{"bare", "unkeyed", "new", "replay"} {
		b.Run(kind, func(b *testing.B) {
			l := newLoad(b, kind)
			b.ReportAllocs()
			for b.Loop() {
				l.once(b)
			}
		})
	}
}
