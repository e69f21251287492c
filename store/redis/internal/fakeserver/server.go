// Package fakeserver is a Redis server for tests, on a real socket. The test provides the
// answers, such as those that a real server gives only when it is in trouble.
package fakeserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Answers that are not replies of the protocol.
const (
	Cut  = "cut"  // closes the connection
	Mute = "mute" // no answer at all
)

// Server answers the greetings of clients itself. All other answers come from the test.
type Server struct {
	Addr string

	// Pings counts the PINGs. The server answers none of them while Hangs is set.
	Pings atomic.Int64
	Hangs atomic.Bool

	stop func()
}

// Start starts a server that ends with the test. answer returns the reply to each
// command, in the protocol of Redis, or [Cut] or [Mute]. Connections are numbered from 1,
// and each calls answer in its own goroutine.
func Start(tb testing.TB, answer func(conn int, command []string) string) *Server {
	tb.Helper()
	var listening net.ListenConfig
	l, err := listening.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String()}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	s.stop = sync.OnceFunc(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			serving.Go(func() {
				defer func() { _ = c.Close() }()
				s.serve(c, func(command []string) string { return answer(n, command) })
			})
		}
	})
	tb.Cleanup(func() { s.stop(); serving.Wait() })
	return s
}

// Stop closes all connections and refuses others.
func (s *Server) Stop() { s.stop() }

func (s *Server) serve(c net.Conn, answer func([]string) string) {
	in := bufio.NewReader(c)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		switch out := s.greet(command, answer); out {
		case Cut:
			return
		case Mute:
		default:
			if _, err := io.WriteString(c, out); err != nil {
				return
			}
		}
	}
}

// greet answers the greetings of clients, and passes on the rest.
func (s *Server) greet(command []string, answer func([]string) string) string {
	switch strings.ToLower(command[0]) {
	case "hello":
		return "-ERR unknown command 'HELLO'\r\n"
	case "client":
		return "+OK\r\n"
	case "ping":
		s.Pings.Add(1)
		if s.Hangs.Load() {
			return Mute
		}
		return "+PONG\r\n"
	default:
		return answer(command)
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in)
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readLength(in)
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil, err
		}
		command[i] = string(arg[:size])
	}
	return command, nil
}

func readLength(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// Bulk returns the reply that is the string s.
func Bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
