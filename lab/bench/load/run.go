package load

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// prefix keeps the keys of this process apart from those of others; serial numbers them.
var (
	prefix = newPrefix()
	serial atomic.Int64
)

func newPrefix() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:]) + "-0000-4000-8000-000000000000"
}

// Run follows an order. It calls begin when the connections are warm, right before the
// measurement. A response that is not the one of a benchmark server is an error.
func Run(ctx context.Context, o Order, begin func()) (Result, error) {
	l := &running{Order: o}
	defer l.close()
	for range o.Connections {
		c, err := dial(ctx, o)
		if err != nil {
			return Result{}, err
		}
		l.conns = append(l.conns, c)
	}
	if o.Kind == Replay {
		if _, err := l.each(l.first); err != nil {
			return Result{}, err
		}
	}
	if o.Warmup > 0 {
		warm := &running{Order: o, conns: l.conns, begin: time.Now()}
		warm.Duration, warm.Count = o.Warmup, 0
		if _, err := warm.each(warm.send); err != nil {
			return Result{}, err
		}
	}
	begin()
	l.begin = time.Now()
	took, err := l.each(l.send)
	r := Result{Requests: len(took), Elapsed: time.Since(l.begin)}
	if len(took) > 0 {
		slices.Sort(took)
		r.P50, r.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return r, err
}

// running is an order that is carried out.
type running struct {
	Order

	conns []*conn
	begin time.Time
	sent  atomic.Int64 // requests of an order with a count
}

func (l *running) close() {
	for _, c := range l.conns {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // no response is expected any more, and lingering ports run out
		}
		_ = c.Close()
	}
}

// each runs f on every connection at once, and returns all latencies and the first error.
func (l *running) each(f func(*conn) ([]time.Duration, error)) (all []time.Duration, err error) {
	latencies, errs := make([][]time.Duration, len(l.conns)), make([]error, len(l.conns))
	var running sync.WaitGroup
	for i, c := range l.conns {
		running.Go(func() { latencies[i], errs[i] = f(c) })
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, len(l.conns), err)
		}
	}
	return slices.Concat(latencies...), nil
}

// first completes the key that a connection replays from then on.
func (l *running) first(c *conn) ([]time.Duration, error) {
	c.renew(serial.Add(1))
	err := c.once(New, l.Marked)
	copy(c.kind, Replay)
	return nil, err
}

// send sends the requests of a connection.
func (l *running) send(c *conn) (took []time.Duration, err error) {
	for {
		start := time.Now()
		switch {
		case l.Count > 0:
			if l.sent.Add(1) > int64(l.Count) {
				return took, nil
			}
		case len(took) > 0 && start.Sub(l.begin) >= l.Duration: // each connection sends at least one
			return took, nil
		}
		if l.Kind == New {
			c.renew(serial.Add(1))
		}
		if err := c.once(l.Kind, l.Marked); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
}
