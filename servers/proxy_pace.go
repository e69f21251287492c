package servers

import (
	"net"
	"time"
)

// throttled is how often a second a stream that is throttled passes on some bytes.
const throttled = 20

// write writes a piece, at the pace that the proxy was told.
func (l *link) write(to *net.TCPConn, piece []byte) error {
	for len(piece) > 0 {
		some, pause := l.proxy.pace(piece)
		if _, err := to.Write(some); err != nil {
			return err
		}
		piece = piece[len(some):]
		l.wait(pause)
	}
	return nil
}

// pace returns the next part of a piece to write, and how long to wait after it, which it
// counts before the bytes can be seen.
func (p *Proxy) pace(piece []byte) (some []byte, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate <= 0 {
		return piece, 0
	}
	p.counts.Held++
	return piece[:min(len(piece), max(1, p.rate/throttled))], time.Second / throttled
}
