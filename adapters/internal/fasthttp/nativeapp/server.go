package nativeapp

import (
	"context"
	"net"
	"sync"

	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

// NewServer makes a server of an app's functions that serve a listener and shut it down.
func NewServer(serve func(net.Listener) error, shutdown func(context.Context) error) testapp.Server {
	return &server{serve: serve, shutdown: shutdown}
}

// server keeps its connections, because fasthttp waits for those that never sent a byte,
// and never closes one.
type server struct {
	serve    func(net.Listener) error
	shutdown func(context.Context) error

	mu      sync.Mutex
	ln      net.Listener
	conns   map[*conn]struct{}
	stopped bool
}

func (s *server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln, s.conns = ln, make(map[*conn]struct{})
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	return s.serve(listener{ln, s})
}

func (s *server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.shutdown(ctx)
	if err != nil {
		s.closeConns(func(*conn) bool { return true })
	}
	return err
}

// stop closes the listener, also one that fasthttp does not know yet, and the idle
// connections.
func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	ln := s.ln
	s.mu.Unlock()
	if ln != nil {
		_ = ln.Close() // fasthttp does it again
	}
	s.closeConns(func(c *conn) bool { return !c.used })
}

func (s *server) closeConns(which func(*conn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if which(c) {
			_ = c.Conn.Close() // its reader notices
		}
	}
}

// listener hands out connections that the server keeps.
type listener struct {
	net.Listener

	server *server
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, server: l.server}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns[c] = struct{}{}
	return c, nil
}

// Close implements [net.Listener]. It has been closed where the server is shut down,
// which is no failure.
func (l listener) Close() error {
	_ = l.Listener.Close()
	return nil
}

// conn is a connection that the server keeps until it is closed.
type conn struct {
	net.Conn

	server *server
	used   bool // bytes came; the mutex of the server guards it
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		c.used = true
	}
	return n, err
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	return c.Conn.Close()
}
