package labhttp_test

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

// A handler that streams without end stops when its client has left: as soon as the body
// is too long to be kept, a write fails as it does without the middleware.
func TestEndlessStreamEndsWhenItsClientHasLeft(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	ended := make(chan error, 1)
	part := []byte(strings.Repeat("x", 64<<10))
	addr := cost.Server(t, cost.Middleware(t)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(part)
			if written.Add(int64(n)); err != nil {
				ended <- err
				return
			}
		}
	})))
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1<<10)); err != nil { // the stream has begun
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the handler ended without an error of its writes")
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the handler still writes, %d bytes until now", written.Load())
	}
}
