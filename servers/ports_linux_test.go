package servers

import (
	"net"
	"strconv"
	"testing"
)

// The port of a killed server stays reserved until it starts again.
func TestAFreePortIsReserved(t *testing.T) {
	t.Parallel()
	_, text, err := net.SplitHostPort(FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if reserve(port) {
		t.Errorf("port %d was given to two", port)
	}
}
