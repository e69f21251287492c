package labfiber

import (
	"context"
	"net"
	"sync"

	"github.com/gofiber/fiber/v2"
)

// fiberServer is a Fiber app as a [testapp.Server]. It keeps its connections, because
// fasthttp waits for those that never sent a byte, and never closes one.
type fiberServer struct {
	app *fiber.App

	mu      sync.Mutex
	ln      net.Listener
	conns   map[*fiberConn]struct{}
	stopped bool
}

func (s *fiberServer) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln, s.conns = ln, make(map[*fiberConn]struct{})
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	return s.app.Listener(fiberListener{ln, s})
}

func (s *fiberServer) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.app.ShutdownWithContext(ctx)
	if err != nil {
		s.closeConns(func(*fiberConn) bool { return true })
	}
	return err
}

// stop closes the listener, also one that fasthttp does not know yet, and the idle
// connections.
func (s *fiberServer) stop() {
	s.mu.Lock()
	s.stopped = true
	ln := s.ln
	s.mu.Unlock()
	if ln != nil {
		_ = ln.Close() // fasthttp does it again
	}
	s.closeConns(func(c *fiberConn) bool { return !c.used })
}

func (s *fiberServer) closeConns(which func(*fiberConn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if which(c) {
			_ = c.Conn.Close() // its reader notices
		}
	}
}

// fiberListener hands out connections that the server keeps.
type fiberListener struct {
	net.Listener

	server *fiberServer
}

// Accept implements [net.Listener].
func (l fiberListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &fiberConn{Conn: conn, server: l.server}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns[c] = struct{}{}
	return c, nil
}

// Close implements [net.Listener]. It has been closed where the server is shut down,
// which is no failure.
func (l fiberListener) Close() error {
	_ = l.Listener.Close()
	return nil
}

// fiberConn is a connection that the server keeps until it is closed.
type fiberConn struct {
	net.Conn

	server *fiberServer
	used   bool // bytes came; the mutex of the server guards it
}

// Read implements [net.Conn].
func (c *fiberConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		c.used = true
	}
	return n, err
}

// Close implements [net.Conn].
func (c *fiberConn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	return c.Conn.Close()
}
