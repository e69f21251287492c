package servers

import (
	"os"
	"sync"
)

// Main runs the tests of a package and stops the shared servers that they used. It has
// the form that test mains take, among them leak detectors:
//
//	func TestMain(m *testing.M) { servers.Main{M: m}.Run() }
type Main struct {
	M interface{ Run() int } // a *testing.M
}

// Run runs the tests, stops the shared servers, and returns the exit code.
func (m Main) Run() int {
	if setting := os.Getenv(delayLineEnv); setting != "" {
		return serveDelayLine(setting)
	}
	defer sharedCleanups.run()
	return m.M.Run()
}

// cleaner collects the functions to call when servers are not needed any more, last in,
// first out. A [testing.TB] is one.
type cleaner interface {
	Cleanup(f func())
}

// sharedCleanups are those of shared servers.
var sharedCleanups cleanups

type cleanups struct {
	mu    sync.Mutex
	stack []func()
}

func (c *cleanups) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stack = append(c.stack, f)
}

func (c *cleanups) run() {
	c.mu.Lock()
	stack := c.stack
	c.stack = nil
	c.mu.Unlock()
	for i := range stack {
		stack[len(stack)-1-i]()
	}
}

// shared is a server of the test process, started for the first test that asks for it.
type shared[T any] struct {
	once   sync.Once
	server T
	err    error
}

func (s *shared[T]) get(start func(cleaner) (T, error)) (T, error) {
	s.once.Do(func() { s.server, s.err = start(&sharedCleanups) })
	return s.server, s.err
}
