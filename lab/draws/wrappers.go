package draws

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// Wrappers are layers as users write them, by name: they put a writer of their own in
// front of the one that they were given.
var Wrappers = map[string]func(http.Handler) http.Handler{
	"hiding":    wrap(func(w http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{w} }),
	"embedding": wrap(func(w http.ResponseWriter) http.ResponseWriter { return &embedding{ResponseWriter: w} }),
	"buffering": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := &buffering{ResponseWriter: w}
			next.ServeHTTP(b, r)
			b.send()
		})
	},
	"timeout": func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "late") },
	"fields": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-A"] = []string{"1"}
			w.Header()["Vary"] = []string{"Origin"}
			next.ServeHTTP(w, r)
		})
	},
	"recovery": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
					w.WriteHeader(http.StatusInternalServerError)
				} else if p != nil {
					panic(p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	},
}

// wrap makes a layer of a writer.
func wrap(writer func(http.ResponseWriter) http.ResponseWriter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(writer(w), r) })
	}
}

// embedding is a writer that counts, and leads to the one behind it.
type embedding struct {
	http.ResponseWriter

	status, size int
}

func (w *embedding) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *embedding) Write(p []byte) (int, error) {
	w.size += len(p)
	return w.ResponseWriter.Write(p)
}

func (w *embedding) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// buffering is a writer that holds status and body back until its handler has returned.
type buffering struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
}

func (w *buffering) WriteHeader(status int) {
	switch {
	case status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status)
	case w.status == 0:
		w.status = status
	}
}

func (w *buffering) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *buffering) send() {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	if w.body.Len() > 0 {
		_, _ = w.ResponseWriter.Write(w.body.Bytes())
	}
}

// Serve serves a handler on a free port, over HTTP/1 and HTTP/2, until the test ends.
func Serve(t *testing.T, name string, handler http.Handler) Host {
	t.Helper()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	addr := Listen(t, server.Serve, func() error {
		http2.CloseIdleConnections()
		return server.Close()
	})
	return Host{Name: name, Addr: addr, Protos: []string{"1.1", "1.1", "1.1", "1.1", "1.0", "2"}}
}

// Listen serves on a free port of the loopback interface until the test ends.
func Listen(t *testing.T, serve func(net.Listener) error, shutdown func() error) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ln) }()
	t.Cleanup(func() {
		if err := shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}
