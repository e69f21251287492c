package load

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
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

// Run follows an order. It calls ready when the connections are warm, waits for it to
// return, and measures then.
func Run(ctx context.Context, o Order, ready func() error) (Result, error) {
	l := &running{Order: o}
	defer l.close()
	if err := l.connect(ctx); err != nil {
		return Result{}, err
	}
	if o.Kind == Replay {
		if err := l.each(func(c *conn, _ *Histogram, _ int) error { return l.first(c) }); err != nil {
			return Result{}, err
		}
	}
	if o.Warmup > 0 {
		warm := *l
		warm.Duration, warm.Count, warm.begin = o.Warmup, 0, time.Now()
		if err := warm.each(warm.send); err != nil {
			return Result{}, err
		}
	}
	if err := ready(); err != nil {
		return Result{}, err
	}
	l.begin = time.Now()
	err := l.each(l.send)
	r := Result{Elapsed: time.Since(l.begin)}
	if err != nil {
		r.Failure = err.Error()
	}
	all := new(Histogram)
	for _, h := range l.histograms {
		all.Add(h)
	}
	r.Requests, r.Wrong = all.total, l.wrong.counts
	r.P50, r.P90, r.P99, r.P999, r.Max = all.Quantile(.5), all.Quantile(.9), all.Quantile(.99), all.Quantile(.999), all.Quantile(1)
	return r, nil
}

// running is an order that is carried out.
type running struct {
	Order

	conns      []*conn
	histograms []*Histogram // of each connection
	begin      time.Time
	sent       *atomic.Int64 // requests of an order with a count
	wrong      *wrongs
}

func (l *running) connect(ctx context.Context) error {
	l.sent, l.wrong = new(atomic.Int64), &wrongs{counts: map[string]int64{}}
	for range l.Connections {
		c, err := dial(ctx, l.Order)
		if err != nil {
			return err
		}
		l.conns = append(l.conns, c)
	}
	return nil
}

func (l *running) close() {
	for _, c := range l.conns {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // no response is expected any more, and lingering ports run out
		}
		_ = c.Close()
	}
}

// each runs f on every connection at once, and returns the first error.
func (l *running) each(f func(*conn, *Histogram, int) error) error {
	l.histograms = make([]*Histogram, len(l.conns))
	errs := make([]error, len(l.conns))
	var all sync.WaitGroup
	for i, c := range l.conns {
		l.histograms[i] = new(Histogram)
		all.Go(func() {
			if errs[i] = f(c, l.histograms[i], i); errs[i] != nil {
				errs[i] = fmt.Errorf("connection %d of %d: %w", i+1, len(l.conns), errs[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// first completes the key that a connection replays from then on.
func (l *running) first(c *conn) error {
	c.renew(serial.Add(1))
	err := c.once(New, l.Marked)
	copy(c.kind, Replay)
	return err
}

// send sends the requests of a connection.
func (l *running) send(c *conn, h *Histogram, i int) error {
	pace := newPace(l, i)
	for n := 0; ; n++ {
		due := pace.next(n)
		switch {
		case l.Count > 0:
			if l.sent.Add(1) > int64(l.Count) {
				return nil
			}
		case n > 0 && due.Sub(l.begin) >= l.Duration: // each connection sends at least one
			return nil
		}
		if l.Kind == New {
			c.renew(serial.Add(1))
		}
		err := c.once(l.Kind, l.Marked)
		var wrong *wrongError
		switch {
		case err == nil:
			h.Record(time.Since(due))
		case l.CountWrong && errors.As(err, &wrong):
			l.wrong.add(wrong.name())
		default:
			return err
		}
	}
}

// pace says when the requests of a connection are due.
type pace struct {
	first time.Time
	every time.Duration // 0: when the one before was answered
}

func newPace(l *running, i int) pace {
	if l.Rate == 0 {
		return pace{}
	}
	every := time.Duration(float64(len(l.conns)) / l.Rate * float64(time.Second))
	return pace{l.begin.Add(every * time.Duration(i) / time.Duration(len(l.conns))), every}
}

// next waits until the n-th request is due, and returns since when it is.
func (p pace) next(n int) time.Time {
	if p.every == 0 {
		return time.Now()
	}
	due := p.first.Add(time.Duration(n) * p.every)
	if early := time.Until(due); early > 0 {
		<-time.After(early)
	}
	return due
}

// wrongs counts the wrong responses of an order by their names.
type wrongs struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (w *wrongs) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[name]++
}
