package suites

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
)

// host acts as a test for the package servers, which starts and stops servers for tests:
// the servers end with the host, and a failure ends the suite.
type host struct {
	testing.TB // never called: the interface has an unexported method

	ctx      context.Context //nolint:containedctx // as a test has one
	cleanups []func()
}

// stopped is the panic value of a host.
type stopped struct {
	reason  string
	missing bool // a program is not on this machine
}

// with runs f with a host, and ends the servers that it started. It returns why f was
// stopped, if it was.
func with(ctx context.Context, f func(*host) error) (err error) {
	h := &host{ctx: ctx}
	defer func() {
		for _, c := range slices.Backward(h.cleanups) {
			c()
		}
		if r := recover(); r != nil {
			s, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			err = s
		}
	}()
	return f(h)
}

// Error implements error.
func (s stopped) Error() string { return s.reason }

func (h *host) Helper()                  {}
func (h *host) Context() context.Context { return h.ctx }
func (h *host) Cleanup(f func())         { h.cleanups = append(h.cleanups, f) }

func (h *host) Fatal(args ...any) { panic(stopped{reason: fmt.Sprint(args...)}) }
func (h *host) Fatalf(format string, args ...any) {
	panic(stopped{reason: fmt.Sprintf(format, args...)})
}

func (h *host) Skipf(format string, args ...any) {
	panic(stopped{reason: fmt.Sprintf(format, args...), missing: true})
}
func (h *host) Output() io.Writer               { return os.Stderr }
func (h *host) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
