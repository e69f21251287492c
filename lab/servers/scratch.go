package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const scratchPrefix = "reprise-server-"

var sweepOnce sync.Once

// scratch returns a new directory that belongs to the account, removed by the cleaner.
//
// This process holds the directory's lock until then. A directory without a holder was
// left by a process that was killed, and the first call of scratch in the next process
// removes it.
func scratch(c cleaner, owner *account) (string, error) {
	sweepOnce.Do(sweep)
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return "", err
	}
	held, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	c.Cleanup(func() {
		_ = os.RemoveAll(dir) // what stays is swept
		_ = held.Close()
	})
	if err := lock(held); err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	return dir, give(dir, owner)
}

// sweep removes the directories of test processes that are gone.
func sweep() {
	const young = time.Minute // may not be locked yet
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < young {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue // another user's
		}
		if lock(f) == nil {
			removeSegment(filepath.Join(dir, pgData))
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

const loopback = "127.0.0.1"

// freePort returns a port of the loopback interface on which nobody listens. It is below
// the range from which systems take the ports of outgoing connections, so that none of
// those takes it before the server does, or while it restarts.
func freePort() (int, error) {
	const lowest, highest = 12_000, 32_000
	for range 100 {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // not a secret
		l, err := net.Listen("tcp", address(port)) //nolint:noctx // does not block
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port from %d to %d", lowest, highest)
}

// FreeAddr returns a host:port of the loopback interface on which nobody listens, for a
// process that listens there again after each restart. A port that the system chooses
// anew each time may meanwhile be that of another process, to which clients of the first
// would still connect.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	port, err := freePort()
	must(tb, err)
	return address(port)
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// onFreePort starts a server on a free port, and again on another one if somebody took
// the port meanwhile.
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
