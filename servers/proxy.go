package servers

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy in front of a server. It forwards bytes until a test breaks the
// link: see [Mode], [Action], Cut, Reset and Delay. It does not know the protocol. All
// methods are safe for concurrent use.
type Proxy struct {
	addr string
	wg   sync.WaitGroup // the goroutines of the listener and of the links

	mu       sync.Mutex
	target   string       // of new connections
	listener net.Listener // nil while it refuses, and when closed
	mode     Mode
	changed  chan struct{} // closed and replaced when mode changes
	up, down time.Duration
	rate     int // bytes a second of each stream; 0: as many as pass
	rules    []*rule
	links    map[*link]struct{}
	counts   ProxyCounts
}

// Mode is the behaviour of a proxy towards all bytes.
type Mode uint8

// The modes of a proxy.
const (
	// Forward passes everything on. It is the mode at the start.
	Forward Mode = iota

	// Stall keeps everything back, both ways, and passes it on when the mode changes to
	// Forward: a network that is slow beyond patience. Connections are accepted and wait as
	// well.
	Stall

	// Swallow silently discards everything, both ways: the half-open connections of a
	// vanished peer. Connections that lost something are cut when the mode changes.
	Swallow

	// Refuse resets all connections and refuses new ones, as if no server listened there.
	Refuse
)

// ProxyCounts are the counts of a proxy so far.
type ProxyCounts struct {
	Accepted int   // connections
	Open     int   // connections now
	Ended    int   // connections that the proxy ended
	Lost     int   // pieces of a stream, among them requests and replies, that were discarded
	Held     int   // times that something was kept back, by Stall, Delay or Throttle
	Up, Down int64 // bytes passed on to the server and to the client
}

// StartProxy starts a proxy in front of target (host:port) on a free loopback port. It
// closes with the test.
func StartProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{addr: FreeAddr(tb), target: target, changed: make(chan struct{}), links: map[*link]struct{}{}}
	must(tb, p.listen())
	tb.Cleanup(p.close)
	return p
}

// Addr returns the proxy's host:port.
func (p *Proxy) Addr() string { return p.addr }

// URL returns the URL of a server with the proxy's address instead of the server's.
func (p *Proxy) URL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic("servers: not a URL") // which may hold a password
	}
	u.Host = p.addr
	return u.String()
}

// Set changes the mode. It takes effect before it returns for all that arrives later.
func (p *Proxy) Set(tb testing.TB, mode Mode) {
	tb.Helper()
	must(tb, p.set(mode))
}

func (p *Proxy) set(mode Mode) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mode == p.mode {
		return nil
	}
	p.mode = mode
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if mode == Refuse || l.torn {
			p.endLocked(l, true)
		}
	}
	if mode != Refuse {
		return p.listenLocked()
	}
	l := p.listener
	p.listener = nil
	return l.Close()
}

// Heal undoes all that the proxy was told, rules too, and ends the connections that are
// open: one that is half-open would stay so.
func (p *Proxy) Heal(tb testing.TB) {
	tb.Helper()
	p.Delay(0, 0)
	p.Throttle(0)
	p.mu.Lock()
	p.rules = nil
	p.mu.Unlock()
	p.Reset()
	p.Set(tb, Forward)
}

// Delay keeps each piece of the streams back for a while, on the way up to the server and
// down to the client.
func (p *Proxy) Delay(up, down time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down = up, down
}

// Throttle passes on so many bytes a second of each stream, in small pieces; 0 passes on
// all at once.
func (p *Proxy) Throttle(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = bytesPerSecond
}

// Retarget connects new connections to another server (host:port). Those that are open
// stay where they are: see Cut and Reset.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut closes the connections that are open now.
func (p *Proxy) Cut() { p.endAll(false) }

// Reset ends the connections that are open now with a TCP reset, which discards the bytes
// in flight.
func (p *Proxy) Reset() { p.endAll(true) }

func (p *Proxy) endAll(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.endLocked(l, reset)
	}
}

func (p *Proxy) delays() (up, down time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up, p.down
}

// count adds n to a counter.
func (p *Proxy) count(counter *int64, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*counter += int64(n)
}

// Counts returns the counts of the proxy so far.
func (p *Proxy) Counts() ProxyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Open = len(p.links)
	return c
}

func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listenLocked()
}

func (p *Proxy) listenLocked() error {
	if p.listener != nil {
		return nil
	}
	var config net.ListenConfig
	var l net.Listener
	err := poll(func() (err error) { // while it refused, an outgoing connection may have taken the port
		l, err = config.Listen(context.Background(), "tcp", p.addr)
		return err
	})
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	p.listener = l
	p.wg.Go(func() { p.accept(l) })
	return nil
}

// accept serves connections until the listener is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		client, _ := conn.(*net.TCPConn)
		p.mu.Lock()
		if p.listener != l {
			_ = client.Close()
			p.mu.Unlock()
			return
		}
		p.wg.Go(p.newLink(client).serve)
		p.mu.Unlock()
	}
}

// close stops the proxy and waits for its goroutines.
func (p *Proxy) close() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		p.endLocked(l, false)
	}
	p.mu.Unlock()
	p.wg.Wait()
}
