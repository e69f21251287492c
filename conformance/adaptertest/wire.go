package adaptertest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// wire is one connection to the server under test, on which a case writes the bytes
// itself.
type wire struct {
	srv  *server
	conn *net.TCPConn
	in   reader
}

// dial connects to the server.
func (srv *server) dial() *wire {
	srv.Helper()
	d := net.Dialer{Timeout: srv.fixture.Patience}
	conn, err := d.DialContext(srv.Context(), "tcp", srv.addr)
	if err != nil {
		srv.Fatalf("connect: %v", err)
	}
	srv.Cleanup(func() { _ = conn.Close() })
	return &wire{srv, conn.(*net.TCPConn), reader{bufio.NewReader(conn)}}
}

// write sends bytes. That the server has closed the connection is not its failure: it may
// have answered before.
func (w *wire) write(bytes string) {
	w.srv.Helper()
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.srv.fixture.Patience))
	_, err := io.WriteString(w.conn, bytes)
	if err != nil && !isClosed(err) {
		w.srv.Fatalf("write %d bytes: %v", len(bytes), err)
	}
}

// read reads a response that has to come whole.
func (w *wire) read() answer {
	w.srv.Helper()
	a, err := w.tryRead()
	if err != nil {
		w.srv.Fatalf("read an answer: %v, after %v", err, a)
	}
	return a
}

// tryRead reads a response, and returns an error if there is none.
func (w *wire) tryRead() (answer, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(w.srv.fixture.Patience))
	return w.in.answer(false)
}

// ask sends a call as it is and reads its response.
func (w *wire) ask(c call) answer {
	w.srv.Helper()
	w.write(c.bytes())
	_ = w.conn.SetReadDeadline(time.Now().Add(w.srv.fixture.Patience))
	a, err := w.in.answer(c.method == "HEAD")
	if err != nil {
		w.srv.Fatalf("%s %s: %v, after %v", c.method, c.target, err, a)
	}
	return a
}

// await reads until the bytes that came end in text.
func (w *wire) await(text string) string {
	w.srv.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(w.srv.fixture.Patience))
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := w.in.ReadByte()
		if err != nil {
			w.srv.Fatalf("waiting for %q: %v, after %q", text, err, got.String())
		}
		got.WriteByte(b)
	}
	return got.String()
}

// peek reads a response from the bytes that arrive within d, which stay to be read.
func (w *wire) peek(d time.Duration) (answer, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(d))
	arrived, _ := io.ReadAll(w.in)
	w.in = reader{bufio.NewReader(io.MultiReader(bytes.NewReader(arrived), w.conn))}
	return reader{bufio.NewReader(bytes.NewReader(arrived))}.answer(false)
}

// close leaves: with a reset, so that the server notices at once.
func (w *wire) close() {
	_ = w.conn.SetLinger(0)
	_ = w.conn.Close()
}

// isClosed reports whether err says that the other side has closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
