package listen_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/examples/internal/listen"
)

func TestATakenPortLeadsToTheNextFreeOne(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	first, port := open(t, &said, "127.0.0.1:0")
	if said.Len() > 0 {
		t.Errorf("said %q of a free port", &said)
	}
	_, next := open(t, &said, first.Addr().String())
	if next <= port {
		t.Errorf("port %d, want one after %d", next, port)
	}
	if want := "Port " + strconv.Itoa(port) + " is taken: " + strconv.Itoa(next) + ", "; !strings.HasPrefix(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("said %q, want one line that begins with %q", &said, want)
	}
}

func TestAnEmptyHostIsLoopback(t *testing.T) {
	t.Parallel()
	ln, _ := open(t, new(strings.Builder), ":0")
	if host, _, _ := net.SplitHostPort(ln.Addr().String()); host != listen.Loopback {
		t.Errorf("listens on %s", ln.Addr())
	}
}

func TestAnInvalidAddressIsNamed(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "::1:8080"} {
		if ln, err := listen.On(t.Context(), t.Output(), addr); err == nil || !strings.Contains(err.Error(), strconv.Quote(addr)+" is invalid: want host:port") {
			t.Errorf("%q: %v, %v", addr, ln, err)
		}
	}
}

func TestAHostOfAnotherMachineIsAnError(t *testing.T) {
	t.Parallel()
	if ln, err := listen.On(t.Context(), t.Output(), "192.0.2.1:8080"); err == nil {
		t.Errorf("listens on %s", ln.Addr())
	}
}

func open(t *testing.T, said *strings.Builder, addr string) (net.Listener, int) {
	t.Helper()
	ln, err := listen.On(t.Context(), said, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln, ln.Addr().(*net.TCPAddr).Port
}
