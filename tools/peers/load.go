package peers

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/tools/peers/usage"
)

// Kind is what a load asks for.
type Kind string

// The kinds of load.
const (
	New    Kind = "new"    // a key of its own for each request
	Replay Kind = "replay" // the key that the connection used before
)

// request is what a client sends; the key is a UUID, which is all that Fiber's own
// middleware accepts.
const (
	keyLength = 36
	request   = "POST /orders HTTP/1.1\r\nHost: peers\r\nIdempotency-Key: %0*d\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n%s"
)

// serial numbers the keys of a process, over all servers.
var serial atomic.Int64

// load is a number of keep-alive connections to one server.
type load struct {
	conns []*conn
}

// conn sends requests one after the other, without allocating.
type conn struct {
	net.Conn

	request []byte
	key     []byte // the place of the key in request
	answer  []byte
}

// dial connects a load.
func dial(addr string, n int) (*load, error) {
	l := &load{conns: make([]*conn, n)}
	for i := range l.conns {
		nc, err := net.Dial("tcp", addr) //nolint:noctx // a server on this machine, which was just started
		if err != nil {
			return nil, err
		}
		text := fmt.Appendf(nil, request, keyLength, serial.Add(1), strings.Repeat("y", 64))
		at := bytes.Index(text, []byte("Key: ")) + len("Key: ")
		l.conns[i] = &conn{Conn: nc, request: text, key: text[at : at+keyLength], answer: make([]byte, 4096)}
	}
	return l, nil
}

// close ends the connections.
func (l *load) close() {
	for _, c := range l.conns {
		_ = c.Close() // nothing is expected of it any more
	}
}

// send makes every connection send n requests of a kind, and returns after the last
// answer.
func (l *load) send(kind Kind, n int) error {
	var all sync.WaitGroup
	errs := make([]error, len(l.conns))
	for i, c := range l.conns {
		all.Go(func() {
			for range n {
				if errs[i] = c.once(kind); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// once sends a request and reads its answer.
func (c *conn) once(kind Kind) error {
	if kind == New {
		digits := strconv.AppendInt(c.answer[:0], serial.Add(1), 10)
		copy(c.key[keyLength-len(digits):], digits)
	}
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	for n := 0; ; {
		m, err := c.Read(c.answer[n:])
		if err != nil {
			return err
		}
		n += m
		if end := bytes.Index(c.answer[:n], []byte("\r\n\r\n")); end < 0 || n < end+4+len(usage.Body) {
			continue
		}
		if !bytes.HasPrefix(c.answer, []byte("HTTP/1.1 201 ")) || !bytes.HasSuffix(c.answer[:n], []byte(usage.Body)) {
			return fmt.Errorf("answered %s", c.answer[:n])
		}
		return nil
	}
}
