package stack

import (
	"errors"
	"log"
	"net"
	"net/http"
	"testing"
	"time"
)

// Serve serves a handler of net/http until the test ends, and returns its address. A log
// line of the server fails the test.
func Serve(t *testing.T, handler http.Handler) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(complaints{t}, "", 0), //nolint:forbidigo // what the server has to say
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Close() // which ends the connections of the client that all tests share
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// CloseIdle closes the connections of the client that are not in use, for a server that
// waits for them when it shuts down.
func CloseIdle() { transport.CloseIdleConnections() }

// complaints fails the test for each log line of a server.
type complaints struct{ t *testing.T }

// Write implements [io.Writer].
func (c complaints) Write(p []byte) (int, error) {
	c.t.Errorf("the server says: %s", p)
	return len(p), nil
}
