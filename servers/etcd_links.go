package servers

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"testing"
	"time"
)

// EtcdLinks are the links between the members of a cluster. A member knows the others by
// names that only the HTTP proxy of its environment resolves, so each direction of each
// pair has a [Proxy].
type EtcdLinks struct {
	dialed  [][]*Proxy // by the member that connects, and the one to which
	cut     [][]bool   // by the member that sends, and the one that does not receive it
	proxies []string   // the address of each member's HTTP proxy
}

// Cut loses all messages from one member to another, until Heal. It does not lose those
// in the other direction.
func (l *EtcdLinks) Cut(from, to int) {
	l.cut[from][to] = true
	l.delay()
}

// delay applies the cuts. A message travels from the member that dialed, in a request, or
// to it, in the stream of a response. It is kept back until Heal ends its connection.
func (l *EtcdLinks) delay() {
	const forever = 24 * time.Hour
	kept := map[bool]time.Duration{true: forever}
	for from, row := range l.dialed {
		for to, p := range row {
			if p != nil {
				p.Delay(kept[l.cut[from][to]], kept[l.cut[to][from]])
			}
		}
	}
}

// Heal ends all cuts.
func (l *EtcdLinks) Heal() {
	for _, row := range l.cut {
		clear(row)
	}
	l.delay()
	for _, row := range l.dialed {
		for _, p := range row {
			if p != nil {
				p.Reset()
			}
		}
	}
}

// Held returns how many pieces of messages the cuts kept back so far.
func (l *EtcdLinks) Held() (pieces int) {
	for _, row := range l.dialed {
		for _, p := range row {
			if p != nil {
				pieces += p.Counts().Held
			}
		}
	}
	return pieces
}

// peerName is the host and port of a member as the others know it.
func peerName(member int) string { return fmt.Sprintf("m%d.invalid:2380", member) }

// startEtcdLinks starts the proxies of the members, which lead nowhere until
// [EtcdLinks.to].
func startEtcdLinks(tb testing.TB, members int) *EtcdLinks {
	tb.Helper()
	l := &EtcdLinks{dialed: make([][]*Proxy, members), cut: make([][]bool, members)}
	for from := range members {
		l.dialed[from], l.cut[from] = make([]*Proxy, members), make([]bool, members)
		targets := map[string]string{}
		for to := range members {
			if from == to {
				continue
			}
			p := StartProxy(tb, "")
			l.dialed[from][to], targets[peerName(to)] = p, p.addr
		}
		l.proxies = append(l.proxies, serveHTTPProxy(tb, targets))
	}
	return l
}

// serveHTTPProxy serves an HTTP proxy that knows the addresses of some hosts.
func serveHTTPProxy(tb testing.TB, targets map[string]string) string {
	tb.Helper()
	ln, err := net.Listen("tcp", address(0)) //nolint:noctx // does not block
	must(tb, err)
	links := &http.Transport{MaxIdleConnsPerHost: -1} // no two requests share a connection, which may be kept back
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server := &http.Server{ErrorLog: quiet, ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", targets[r.In.URL.Host]
		},
		Transport: links, FlushInterval: -1, ErrorLog: quiet,
	}}
	go func() { _ = server.Serve(ln) }()
	tb.Cleanup(func() {
		_ = server.Close()
		links.CloseIdleConnections()
	})
	return ln.Addr().String()
}

// to sets the address of a member.
func (l *EtcdLinks) to(member int, addr string) {
	for _, row := range l.dialed {
		if p := row[member]; p != nil {
			p.Retarget(addr)
		}
	}
}

// env returns the environment of a member.
func (l *EtcdLinks) env(member int) []string {
	if l == nil {
		return nil
	}
	return []string{"HTTP_PROXY=http://" + l.proxies[member]}
}
