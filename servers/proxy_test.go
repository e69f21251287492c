package servers_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// lineServer answers each line with "ok: " and the line, and remembers it.
type lineServer struct {
	addr string
	mu   sync.Mutex
	got  []string
}

func startLineServer(t *testing.T) *lineServer {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lineServer{addr: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait() // the clients and the proxy are closed before
	})
	return s
}

func (s *lineServer) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		s.mu.Lock()
		s.got = append(s.got, lines.Text())
		s.mu.Unlock()
		if _, err := io.WriteString(conn, "ok: "+lines.Text()+"\n"); err != nil {
			return
		}
	}
}

// received reports whether the server received the line.
func (s *lineServer) received(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.got, line)
}

// client is a connection that asks by the line.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, t, bufio.NewReader(conn)}
}

// ask sends a line and returns the result, or the error with which the connection refuses
// one within patience.
func (c *client) ask(line string, patience time.Duration) (string, error) {
	c.t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	answer, err := c.r.ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

// mustAsk is ask on a connection that has to answer.
func (c *client) mustAsk(line string) {
	c.t.Helper()
	if answer, err := c.ask(line, patient); answer != "ok: "+line || err != nil {
		c.t.Fatalf("asked %q: answer %q, error %v", line, answer, err)
	}
}

const (
	patient   = time.Minute
	impatient = 100 * time.Millisecond
)

func TestProxyActionDecidesTheFateOfARequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		action   servers.Action
		name     string
		answered bool
		fails    error // with which the client is left
		received bool
		lost     int // -1: depends on who is faster
	}{
		{servers.Pass, "pass", true, nil, true, 0},
		{servers.LoseRequest, "lose request", false, io.EOF, false, 1},
		{servers.LoseReply, "lose reply", false, io.EOF, true, 1},
		{servers.CutAfter, "cut after", false, io.EOF, true, -1},
		{servers.Silence, "silence", false, os.ErrDeadlineExceeded, true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startLineServer(t)
			proxy := servers.StartProxy(t, server.addr)
			// The first two marked requests pass, the third meets the action.
			done := proxy.On("mark", servers.Pass, servers.Pass, tt.action)
			c := dial(t, proxy.Addr())
			for _, line := range []string{"mark 1", "other", "mark 2", "other"} {
				c.mustAsk(line)
			}
			select {
			case <-done:
				t.Fatal("done before the last action")
			default:
			}

			patience := patient
			if errors.Is(tt.fails, os.ErrDeadlineExceeded) {
				patience = impatient
			}
			answer, err := c.ask("mark 3", patience)
			if (answer == "ok: mark 3") != tt.answered || !errors.Is(err, tt.fails) {
				t.Errorf("answer %q, error %v, want error %v", answer, err, tt.fails)
			}
			<-done
			if tt.received {
				eventually(t, patient, "the server received it", func() bool { return server.received("mark 3") })
			} else if server.received("mark 3") {
				t.Error("the server received it")
			}
			if tt.lost >= 0 {
				eventually(t, patient, fmt.Sprintf("%d pieces were lost", tt.lost), func() bool { return proxy.Counts().Lost == tt.lost })
			}

			dial(t, proxy.Addr()).mustAsk("mark 4") // the rule is gone
		})
	}
}

func TestProxyRulesApplyInOrderAndAcrossPieces(t *testing.T) {
	t.Parallel()
	server := startLineServer(t)
	proxy := servers.StartProxy(t, server.addr)
	first := proxy.On("commit", servers.LoseReply)
	second := proxy.On("", servers.LoseRequest)

	c := dial(t, proxy.Addr())
	if _, err := io.WriteString(c, "x"); err != nil { // the second rule's: it takes anything
		t.Fatal(err)
	}
	<-second
	if _, err := c.ask("", patient); err == nil {
		t.Error("the connection was not cut")
	}

	c = dial(t, proxy.Addr())
	for _, piece := range []string{"com", "mi"} {
		before := proxy.Counts().Up
		if _, err := io.WriteString(c, piece); err != nil {
			t.Fatal(err)
		}
		eventually(t, patient, "the piece passed", func() bool { return proxy.Counts().Up > before })
	}
	if answer, err := c.ask("t", patient); !errors.Is(err, io.EOF) {
		t.Errorf("answer %q, error %v, want io.EOF", answer, err)
	}
	<-first
	if !server.received("commit") {
		t.Error("the server did not receive the request whose reply was lost")
	}
}

func TestProxyStallKeepsWhatSwallowDiscards(t *testing.T) {
	t.Parallel()
	for _, mode := range []servers.Mode{servers.Stall, servers.Swallow} {
		t.Run(map[servers.Mode]string{servers.Stall: "stall", servers.Swallow: "swallow"}[mode], func(t *testing.T) {
			t.Parallel()
			server := startLineServer(t)
			proxy := servers.StartProxy(t, server.addr)
			c, idle := dial(t, proxy.Addr()), dial(t, proxy.Addr())
			c.mustAsk("before")
			idle.mustAsk("before")

			proxy.Set(t, mode)
			late := dial(t, proxy.Addr()) // is accepted
			for _, held := range []*client{c, late} {
				if answer, err := held.ask("held", impatient); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("answer %q, error %v while nothing passes", answer, err)
				}
			}
			if server.received("held") {
				t.Error("the server received something")
			}

			proxy.Set(t, servers.Forward)
			idle.mustAsk("after")
			_ = c.SetDeadline(time.Now().Add(patient))
			answer, err := c.r.ReadString('\n')
			if kept := mode == servers.Stall; kept != (answer == "ok: held\n") || kept != (err == nil) {
				t.Errorf("afterwards: answer %q, error %v", answer, err)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection that lost something was not cut")
			}
		})
	}
}

func TestProxyRefuseResetsAndRefuses(t *testing.T) {
	t.Parallel()
	server := startLineServer(t)
	proxy := servers.StartProxy(t, server.addr)
	c := dial(t, proxy.Addr())
	c.mustAsk("before")

	proxy.Set(t, servers.Refuse)
	if _, err := c.ask("x", patient); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("an open connection: %v, want a reset", err)
	}
	var d net.Dialer
	if _, err := d.DialContext(t.Context(), "tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection: %v, want it refused", err)
	}
	proxy.Set(t, servers.Forward)
	dial(t, proxy.Addr()).mustAsk("after")
}

func TestProxyCutAndResetEndOpenConnections(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, startLineServer(t).addr)
	for _, tt := range []struct {
		end  func()
		want error
	}{{proxy.Cut, io.EOF}, {proxy.Reset, syscall.ECONNRESET}} {
		c := dial(t, proxy.Addr())
		c.mustAsk("before")
		tt.end()
		_ = c.SetDeadline(time.Now().Add(patient))
		if _, err := c.r.ReadByte(); !errors.Is(err, tt.want) {
			t.Errorf("error %v, want %v", err, tt.want)
		}
		dial(t, proxy.Addr()).mustAsk("after")
	}
	if c := proxy.Counts(); c.Accepted != 4 || c.Ended < 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestProxyDelaysBothWays(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, startLineServer(t).addr)
	if got, want := proxy.URL("redis://user:pw@localhost:1/3"), "redis://user:pw@"+proxy.Addr()+"/3"; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
	c := dial(t, proxy.Addr())
	proxy.Delay(40*time.Millisecond, 30*time.Millisecond)
	start := time.Now()
	c.mustAsk("slow")
	if took := time.Since(start); took < 70*time.Millisecond {
		t.Errorf("answered after %v, want at least 70ms", took)
	}
	proxy.Delay(0, 0)
	c.mustAsk("quick")
	if got := proxy.Counts(); got.Up != int64(len("slow\nquick\n")) || got.Down != int64(len("ok: slow\nok: quick\n")) {
		t.Errorf("counts %+v", got)
	}
}

func TestProxyThrottlesToItsRate(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, startLineServer(t).addr)
	c := dial(t, proxy.Addr())
	if c.mustAsk("unhindered"); proxy.Counts().Held != 0 {
		t.Errorf("counts %+v, want nothing kept back", proxy.Counts())
	}
	line := strings.Repeat("x", 99) // 100 bytes up and 104 down
	proxy.Throttle(400)
	start := time.Now()
	c.mustAsk(line)
	if took := time.Since(start); took < 400*time.Millisecond {
		t.Errorf("204 bytes took %v at 400 bytes a second", took)
	}
	if proxy.Counts().Held < 8 {
		t.Errorf("counts %+v, want all pieces kept back", proxy.Counts())
	}
	proxy.Throttle(0)
	held := proxy.Counts().Held
	if c.mustAsk(line); proxy.Counts().Held != held {
		t.Errorf("counts %+v without a limit, want %d pieces kept back", proxy.Counts(), held)
	}
}

// Armed rules and half-open connections are gone, too.
func TestProxyHealsWhole(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, startLineServer(t).addr)
	c := dial(t, proxy.Addr())
	c.mustAsk("before")
	silenced := proxy.On("hush", servers.Silence)
	if answer, err := c.ask("hush", impatient); err == nil {
		t.Errorf("a half-open connection answered %q", answer)
	}
	<-silenced
	proxy.On("", servers.LoseReply)
	proxy.Delay(time.Minute, time.Minute)
	proxy.Throttle(1)
	proxy.Set(t, servers.Stall)
	proxy.Heal(t)
	if _, err := c.ask("again", patient); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the half-open connection ends with %v, want it reset", err)
	}
	dial(t, proxy.Addr()).mustAsk("after")
}

func TestProxyPassesEndsOn(t *testing.T) {
	t.Parallel()
	server := startLineServer(t)
	proxy := servers.StartProxy(t, server.addr)
	c := dial(t, proxy.Addr())
	if _, err := io.WriteString(c, "no newline"); err != nil {
		t.Fatal(err)
	}
	tcp, _ := c.Conn.(*net.TCPConn)
	if err := tcp.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c)
	if string(rest) != "ok: no newline\n" || err != nil {
		t.Errorf("after the client's end: %q, %v", rest, err)
	}
	eventually(t, patient, "the connection is gone", func() bool { return proxy.Counts().Open == 0 })
	if ended := proxy.Counts().Ended; ended != 0 {
		t.Errorf("the proxy says that it ended %d connections", ended)
	}
}
