package servers_test

import (
	"net"
	"testing"
	"time"
)

// eventually fails the test when condition does not hold within d.
func eventually(t *testing.T, d time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not true that %s", d, what)
		}
	}
}

// listens reports whether a process accepts connections on addr.
func listens(t *testing.T, addr string) bool {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
