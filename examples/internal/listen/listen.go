// Package listen opens the port that an example serves on.
package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
)

// Loopback is the host of an address that names none.
const Loopback = "127.0.0.1"

// On listens on addr, which is host:port: an empty host is [Loopback], and port 0 is any
// free port. If the port is taken, On listens on the next free one and says so in a line
// on out.
func On(ctx context.Context, out io.Writer, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	wanted, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil {
		return nil, fmt.Errorf("the address %q is invalid: want host:port, such as %s:8080", addr, Loopback)
	}
	host = cmp.Or(host, Loopback)
	for next := wanted; next <= 65535; next++ {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.FormatUint(next, 10)))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case err == nil && next != wanted:
			fmt.Fprintf(out, "Port %d is taken: %d, the next free one, is used instead.\n", wanted, next)
		}
		return ln, err
	}
	return nil, fmt.Errorf("no port of %s from %d on is free", host, wanted)
}
