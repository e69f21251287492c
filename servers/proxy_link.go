package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// link is one connection through a proxy.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	ctx    context.Context // ends when the proxy ends the link
	cancel context.CancelFunc

	// The rest is guarded by the proxy's mu.
	server *net.TCPConn // nil before it is connected
	torn   bool         // something was discarded: neither side may hear of the other any more
	silent bool         // see Silence
	losing func()       // see LoseReply: called when the reply was lost; nil when none is to be lost
	tail   []byte       // the last bytes of the client, where a match may begin
}

// newLink takes a connection that the proxy accepted. The caller holds the proxy's mu.
func (p *Proxy) newLink(client *net.TCPConn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	p.links[l] = struct{}{}
	p.counts.Accepted++
	return l
}

// serve connects to the server and passes on both streams until both have ended.
func (l *link) serve() {
	defer l.forget()
	if !l.awaitForward() || !l.connect() {
		return
	}
	var down sync.WaitGroup
	down.Go(func() { l.pump(l.server, l.client, l.passDown) })
	l.pump(l.client, l.server, l.passUp)
	down.Wait()
}

func (l *link) connect() bool {
	var d net.Dialer
	l.proxy.mu.Lock()
	target := l.proxy.target
	l.proxy.mu.Unlock()
	conn, err := d.DialContext(l.ctx, "tcp", target)
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if err != nil {
		l.proxy.endLocked(l, true)
		return false
	}
	l.server, _ = conn.(*net.TCPConn)
	if l.ctx.Err() != nil {
		_ = l.server.Close()
		return false
	}
	return true
}

// pump forwards the stream from src to dst through pass until one of them ends it, and
// then ends it at dst the way it ended at src.
func (l *link) pump(src, dst *net.TCPConn, pass func([]byte) bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !pass(buf[:n]) {
			return
		}
		if err == nil {
			continue
		}
		if !l.awaitForward() {
			return
		}
		if errors.Is(err, io.EOF) {
			_ = dst.CloseWrite()
		} else {
			l.abort()
		}
		return
	}
}

// passUp forwards a piece of the client's stream to the server, or applies the rules. It
// reports whether the stream continues.
func (l *link) passUp(piece []byte) bool {
	p := l.proxy
	up, _ := p.delays()
	if l.pause(up); !l.mayPass() {
		return l.ctx.Err() == nil
	}
	p.mu.Lock()
	next := p.nextStep(l.tail, piece)
	l.tail = append(l.tail, piece[max(0, len(piece)-maxMatch):]...)
	l.tail = l.tail[max(0, len(l.tail)-maxMatch):]
	switch next.action {
	case LoseReply:
		l.losing = next.finished
	case Silence, CutAfter:
		l.silent = true // before the server can answer
	case LoseRequest:
		p.counts.Lost++
	case Pass:
	}
	p.mu.Unlock()

	if next.action != LoseRequest {
		p.count(&p.counts.Up, len(piece)) // before the bytes can be seen
		if err := l.write(l.server, piece); err != nil {
			l.abort()
			return false
		}
	}
	switch next.action {
	case LoseRequest, CutAfter:
		l.end()
	case LoseReply:
		return true // not done yet
	case Pass, Silence:
	}
	next.finished()
	return l.ctx.Err() == nil
}

// passDown passes a piece of the server's stream on to the client, unless it is a reply
// to lose. It reports whether the stream goes on.
func (l *link) passDown(piece []byte) bool {
	p := l.proxy
	_, down := p.delays()
	if l.pause(down); !l.mayPass() {
		return l.ctx.Err() == nil
	}
	p.mu.Lock()
	lost := l.losing
	if lost != nil {
		p.counts.Lost++
		p.endLocked(l, false)
	}
	p.mu.Unlock()
	if lost != nil {
		lost()
		return false
	}
	p.count(&p.counts.Down, len(piece))
	if err := l.write(l.client, piece); err != nil {
		l.abort()
		return false
	}
	return true
}

// abort tells both sides that one of them reset the connection.
func (l *link) abort() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.closeLocked(true)
}

// end closes the link on behalf of the proxy.
func (l *link) end() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.proxy.endLocked(l, false)
}

// endLocked is end for a caller that holds mu, by a TCP reset if reset is set.
func (p *Proxy) endLocked(l *link, reset bool) {
	if l.ctx.Err() != nil {
		return
	}
	p.counts.Ended++
	l.closeLocked(reset)
}

// closeLocked closes both connections. The caller holds the proxy's mu.
func (l *link) closeLocked(reset bool) {
	l.cancel()
	for _, conn := range []*net.TCPConn{l.client, l.server} {
		if conn == nil {
			continue
		}
		if reset {
			_ = conn.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// forget closes the link, if the peers ended it, and removes it from the proxy.
func (l *link) forget() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.closeLocked(false)
	delete(l.proxy.links, l)
}
