// Package front serves a handler to clients, and its state to operators on a separate
// listener.
package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// The bounds of a connection that no flag changes.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	maxStreams        = 250              // of one HTTP/2 connection
	maxOperators      = 64               // connections
	pingAfter         = 30 * time.Second // of silence on an HTTP/2 connection
)

// Config says how to serve.
type Config struct {
	Listen         string // the address for clients
	Admin          string // the address for operators; empty: none
	Files          TLSFiles
	MaxConnections int // of clients
	MaxPerPeer     int // of one address, or network of 64 bits in IPv6

	// Exempt reports whether a peer may have all of them.
	Exempt func(remoteAddress string) bool

	Ready   func(ctx context.Context) error // why the handler cannot serve
	Metrics http.Handler                    // for operators
	Log     *slog.Logger                    // of the servers
}

// Server has its listeners open. Make one with [Open], and then call Run once.
type Server struct {
	clients, operators net.Listener // operators may be nil
	peers              *peers       // of clients
	public, admin      *http.Server
	tls                *tlsFiles // nil: no TLS
	draining           atomic.Bool
}

// Open opens the listeners. Clients speak HTTP/1.1 or HTTP/2, with TLS if the config has
// files of it, else without.
func Open(ctx context.Context, c Config, handler http.Handler) (*Server, error) {
	s := &Server{}
	var err error
	if s.tls, err = loadTLS(c.Files); err != nil {
		return nil, err
	}
	var listening net.ListenConfig
	if s.clients, err = listening.Listen(ctx, "tcp", c.Listen); err != nil {
		return nil, err
	}
	s.peers = &peers{
		Listener: s.clients, most: c.MaxPerPeer, total: c.MaxConnections, exempt: c.Exempt, log: c.Log,
		open: map[netip.Prefix]int{}, met: map[string]int64{},
	}
	s.clients = netutil.LimitListener(s.peers, c.MaxConnections)
	if c.Admin != "" {
		if s.operators, err = listening.Listen(ctx, "tcp", c.Admin); err != nil {
			_ = s.clients.Close()
			return nil, err
		}
		s.operators = netutil.LimitListener(s.operators, maxOperators)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.tls != nil)
	protocols.SetUnencryptedHTTP2(s.tls == nil)
	server := func(handler http.Handler) *http.Server {
		return &http.Server{
			Handler:           handler,
			Protocols:         &protocols,
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter},
			ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
			// A signal must not cancel the requests: the program waits for them.
			BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		}
	}
	s.public, s.admin = server(handler), server(s.state(c))
	if s.tls != nil {
		s.public.TLSConfig = s.tls.config()
	}
	return s, nil
}

// URL returns the address of clients.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.clients.Addr().String()
	}
	return "http://" + s.clients.Addr().String()
}

// AdminURL returns the address of operators, empty if there is none.
func (s *Server) AdminURL() string {
	if s.operators == nil {
		return ""
	}
	return "http://" + s.operators.Addr().String()
}

// Reload reads the TLS files again, and then calls also. If both succeed, new connections
// use the new files; otherwise the former ones stay in use.
func (s *Server) Reload(also func() error) error {
	if s.tls == nil {
		return also()
	}
	next, err := s.tls.load()
	if err != nil {
		return err
	}
	if err := also(); err != nil {
		return err
	}
	s.tls.current.Store(next)
	return nil
}

// ErrDrain says that requests with a key were still running when the time to drain and
// to finish was over.
var ErrDrain = errors.New("requests with a key were still running")

// finishTime is the least time for finish, even if requests took the whole drain time.
const finishTime = 2 * time.Second

// Run serves until ctx ends. Then it closes the listener, waits up to drain for the
// requests, cuts those that are left, such as streams, and calls finish, which waits for
// those with a key. It serves operators until the end.
func (s *Server) Run(ctx context.Context, drain time.Duration, finish func(context.Context) error) error {
	done := make(chan error, 2)
	go func() {
		if s.tls != nil {
			done <- s.public.ServeTLS(s.clients, "", "")
		} else {
			done <- s.public.Serve(s.clients)
		}
	}()
	if s.operators != nil {
		go func() { done <- s.admin.Serve(s.operators) }()
		defer s.admin.Close()
	}
	var ended error
	select {
	case ended = <-done:
		ended = fmt.Errorf("the server ended: %w", ended)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := s.public.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = s.public.Close()
		err = nil
	}
	if end, _ := bounded.Deadline(); time.Until(end) < finishTime {
		var reserved context.CancelFunc
		bounded, reserved = context.WithTimeout(context.WithoutCancel(ctx), finishTime)
		defer reserved()
	}
	finished := finish(bounded)
	if errors.Is(finished, context.DeadlineExceeded) {
		finished = ErrDrain
	}
	return errors.Join(ended, err, finished)
}
