package front

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
)

// The bounds of connections, as metrics and the log name them.
const (
	boundTotal = "max_connections"
	boundPeer  = "max_connections_per_peer"
)

// peers is a listener that closes what a peer opens beyond its share. A peer is an IPv4
// address, or a network of 64 bits in IPv6, of which one client has all addresses.
type peers struct {
	net.Listener

	most   int                             // connections of one peer
	total  int                             // of all of them, which another listener bounds
	exempt func(remoteAddress string) bool // a gateway, whose connections are those of its clients
	log    *slog.Logger

	mu   sync.Mutex
	open map[netip.Prefix]int
	all  int
	met  map[string]int64 // how often each bound was met
}

// Accept implements [net.Listener].
func (l *peers) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerOf(conn)
		if l.enter(peer, l.exempt(conn.RemoteAddr().String())) {
			return &peerConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(peer) })}, nil
		}
		_ = conn.Close()
	}
}

func peerOf(conn net.Conn) netip.Prefix {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	bits := 32
	if address.Addr().Unmap().Is6() {
		bits = 64
	}
	peer, _ := address.Addr().Unmap().WithZone("").Prefix(bits)
	return peer
}

// enter counts a connection, and reports whether its peer may have it.
func (l *peers) enter(peer netip.Prefix, exempt bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[peer] >= l.most && !exempt {
		l.meet(boundPeer, slog.String("peer", peer.String()))
		return false
	}
	l.open[peer]++
	if l.all++; l.all >= l.total {
		l.meet(boundTotal)
	}
	return true
}

// meet counts that a bound is met, and logs it each time that the number has doubled.
func (l *peers) meet(bound string, more ...any) {
	l.met[bound]++
	if n := l.met[bound]; n&(n-1) == 0 {
		l.log.Warn("proxy: a bound is met", append(more, slog.String("bound", bound), slog.Int64("times", n))...)
	}
}

func (l *peers) leave(peer netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[peer]--; l.open[peer] == 0 {
		delete(l.open, peer)
	}
}

// peerConn is a connection that counts until it is closed.
type peerConn struct {
	net.Conn

	leave func()
}

// Close implements [net.Conn].
func (c *peerConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Connections returns how many connections clients have, and how often each bound of them
// was met.
func (s *Server) Connections() (open int, met map[string]int64) {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return s.peers.all, map[string]int64{boundTotal: s.peers.met[boundTotal], boundPeer: s.peers.met[boundPeer]}
}
