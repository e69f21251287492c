package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// TestReadTimeoutEndsSlowSenders shows which setting of net/http ends a request whose
// body does not come: ReadTimeout. The middleware waits as long as the server lets it.
func TestReadTimeoutEndsSlowSenders(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, crowd)
	handler := func(http.ResponseWriter, *http.Request) { ran <- struct{}{} }
	addr, store := timed(t, handler, 200*time.Millisecond, 0, protocol.Config{})
	for i := range 5 {
		conn := dial(t, addr)
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: slow-%d\r\nContent-Length: 100\r\n\r\n{", i)
		got, err := io.ReadAll(conn) // the end of the connection, without a byte more of the body
		if err != nil || len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
			t.Errorf("answered %q, %v", got, err)
		}
	}
	if n := store.claims.Load(); len(ran) > 0 || n > 0 {
		t.Errorf("%d handlers ran, and %d claims were made", len(ran), n)
	}
}

// TestWriteTimeoutEndsUnreadStreams shows which setting of net/http ends a stream that
// its client does not read: WriteTimeout. Without it such a client holds its own key, and
// no other. The run goes on without its client, and is recorded.
func TestWriteTimeoutEndsUnreadStreams(t *testing.T) {
	t.Parallel()
	const parts, part, timeout = 96, 64 << 10, time.Second
	running := make(chan struct{}, 1)
	handler := func(w http.ResponseWriter, _ *http.Request) {
		running <- struct{}{}
		for range parts {
			_, _ = io.WriteString(w, strings.Repeat("x", part))
			_ = http.NewResponseController(w).Flush()
		}
	}
	addr, _ := timed(t, handler, 0, timeout, protocol.Config{Limits: protocol.Limits{ResponseBody: 2 * parts * part}})
	const wanted = "POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: stream\r\nContent-Length: 0\r\n\r\n"
	first := dial(t, addr)
	_ = first.(*net.TCPConn).SetReadBuffer(4 << 10)
	began := time.Now()
	_, _ = io.WriteString(first, wanted)
	<-running
	eventually(t, "the stream is recorded", func() bool {
		got := ask(t, addr, wanted)
		return got.replayed && got.size == parts*part
	})
	if took := time.Since(began); took < timeout {
		t.Errorf("recorded after %v: the stream did not wait for its client", took)
	}
}

// timed serves a handler behind the middleware of net/http, by a server with timeouts.
func timed(t *testing.T, handler http.HandlerFunc, read, write time.Duration, policy protocol.Config) (addr string, store *countingStore) {
	t.Helper()
	store = &countingStore{Store: memstore.New()}
	guard, err := protocol.New(store, policy)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler))
	server.Config.ReadTimeout, server.Config.WriteTimeout = read, write
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = guard.Close(context.WithoutCancel(t.Context()))
	})
	return server.Listener.Addr().String(), store
}
