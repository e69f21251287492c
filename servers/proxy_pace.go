package servers

import (
	"net"
	"time"
)

const (
	// throttled is how often a second a stream that is throttled passes on some bytes.
	throttled = 20

	// sharedPiece is how many bytes a connection passes on before it is the turn of another
	// that shares the link.
	sharedPiece = 8 << 10

	// sharedSlack is how far a shared link may fall behind because of late timers and catch
	// up again.
	sharedSlack = 5 * time.Millisecond
)

// write writes a piece, at the pace that the proxy was told. free says how far its
// direction of a shared link is booked.
func (l *link) write(to *net.TCPConn, free *time.Time, piece []byte) error {
	for len(piece) > 0 {
		some, before, after := l.proxy.pace(free, piece)
		l.wait(before)
		if _, err := to.Write(some); err != nil {
			return err
		}
		piece = piece[len(some):]
		l.wait(after)
	}
	return nil
}

// pace returns the next part of a piece to write, and how long to wait before and after,
// which it counts before the bytes can be seen.
func (p *Proxy) pace(free *time.Time, piece []byte) (some []byte, before, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate > 0 {
		piece, after = piece[:min(len(piece), max(1, p.rate/throttled))], time.Second/throttled
	}
	if p.shared > 0 {
		piece = piece[:min(len(piece), sharedPiece)]
		now := time.Now()
		if late := now.Add(-sharedSlack); free.Before(late) {
			*free = late
		}
		*free = free.Add(time.Duration(len(piece)) * time.Second / time.Duration(p.shared))
		before = free.Sub(now)
	}
	if before > 0 || after > 0 {
		p.counts.Held++
	}
	return piece, before, after
}
