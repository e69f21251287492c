package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const loopback = "127.0.0.1"

// freePort returns an unused port of the loopback interface, reserved until this process
// ends. It is below the range from which systems take the ports of outgoing connections,
// so that none of those takes it before the server does, or while it restarts.
func freePort() (int, error) {
	const lowest, highest = 12_000, 32_000
	for range 100 {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // not a secret
		l, err := net.Listen("tcp", address(port)) //nolint:noctx // does not block
		if err != nil {
			continue
		}
		if err = l.Close(); err != nil || reserve(port) {
			return port, err
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", lowest, highest)
}

// reserved are the marks of this process, which end with it.
var reserved struct {
	mu    sync.Mutex
	marks []net.Listener
}

// reserve reserves a port among the test processes of this machine, and reports whether
// it could. The server of a port may be down for a while, between a kill and its restart.
// The reservation is a name among the abstract sockets of Linux, which leave no files;
// other systems have none.
func reserve(port int) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	mark, err := net.Listen("unix", "@reprise-port-"+strconv.Itoa(port)) //nolint:noctx // does not block
	if err != nil {
		return false
	}
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	reserved.marks = append(reserved.marks, mark)
	return true
}

// FreeAddr returns an unused host:port of the loopback interface, for a process that
// listens there again after each restart. A port that the system chooses anew each time
// may by then belong to another process, to which clients of the first would still
// connect.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	port, err := freePort()
	must(tb, err)
	return address(port)
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// onFreePort starts a server on a free port, and tries another one if the port was taken
// before the start.
func onFreePort[T any](start func(port int) (T, error)) (server T, err error) {
	for range 5 {
		var port int
		if port, err = freePort(); err != nil {
			return server, err
		}
		if server, err = start(port); err == nil || !strings.Contains(strings.ToLower(err.Error()), "in use") {
			return server, err
		}
	}
	return server, err
}
