package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// readyTimeout bounds the check whether the handler can serve.
const readyTimeout = 2 * time.Second

var (
	errDraining = errors.New("the program ends")
	errTotal    = errors.New("clients have all connections of max_connections")
)

// state returns the handler for operators: /healthz says that the process serves, /readyz
// whether clients should be sent to it, and /metrics has its numbers.
func (s *Server) state(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.ready(r.Context(), c.Ready); err != nil {
			c.Log.WarnContext(r.Context(), "not ready", slog.Any("error", err))
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /metrics", c.Metrics)
	return mux
}

func (s *Server) ready(ctx context.Context, ask func(context.Context) error) error {
	if s.draining.Load() {
		return errDraining
	}
	if open, _ := s.Connections(); open >= s.peers.total {
		return errTotal
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return ask(ctx)
}
