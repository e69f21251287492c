package servers

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// DelayLine is a TCP proxy that stands for a network of a certain round trip: every byte
// arrives half a round trip after it was sent. Unlike the delay of a [Proxy], which keeps
// a stream back piece by piece, it does not limit what a connection carries meanwhile.
type DelayLine struct {
	addr   string
	target string
	oneWay time.Duration
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// StartDelayLine starts a delay line in front of target (host:port) on a free loopback
// port. It closes with the test. A round trip of zero passes everything on at once.
func StartDelayLine(tb testing.TB, target string, roundTrip time.Duration) *DelayLine {
	tb.Helper()
	var config net.ListenConfig
	l, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	must(tb, err)
	d := &DelayLine{addr: l.Addr().String(), target: target, oneWay: roundTrip / 2}
	d.wg.Go(func() { d.accept(l) })
	tb.Cleanup(func() {
		_ = l.Close()
		d.close()
	})
	return d
}

// Addr returns the delay line's host:port.
func (d *DelayLine) Addr() string { return d.addr }

// accept serves connections until the listener is closed.
func (d *DelayLine) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		d.wg.Go(func() { d.serve(client) })
	}
}

func (d *DelayLine) serve(client net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", d.target)
	if err != nil {
		_ = client.Close()
		return
	}
	if !d.own(client, server) {
		return
	}
	var up sync.WaitGroup
	up.Go(func() { d.carry(client, server) })
	d.carry(server, client)
	up.Wait()
	_, _ = client.Close(), server.Close()
}

// own makes close end the connections. It ends them itself, and reports false, when the
// line is closed.
func (d *DelayLine) own(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conns...)
	if d.closed {
		d.endLocked()
	}
	return !d.closed
}

// carried is a piece of a stream and when it arrives.
type carried struct {
	bytes []byte
	due   time.Time
}

// carry passes one direction of a connection on, each piece when it is due, until it
// ends.
func (d *DelayLine) carry(src, dst net.Conn) {
	pieces := make(chan carried, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		for piece := range pieces {
			sleepPrecisely(time.Until(piece.due))
			_, _ = dst.Write(piece.bytes) // the reader notices what is broken
		}
	})
	for {
		buf := make([]byte, 16<<10)
		n, err := src.Read(buf)
		if n > 0 {
			pieces <- carried{buf[:n], time.Now().Add(d.oneWay)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writing.Wait()
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func (d *DelayLine) close() {
	d.mu.Lock()
	d.closed = true
	d.endLocked()
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *DelayLine) endLocked() {
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.conns = nil
}
