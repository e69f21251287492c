package servers

import (
	"context"
	"testing"
	"time"
)

// control lets a test stop, freeze and kill a server that it started. A call for a server
// that the test did not start is a mistake of the test, and panics.
type control struct {
	process *process
	ready   func(context.Context) error // nil once this server, and no other on its port, answers
}

// serve launches the server, which stops with the cleaner.
func (c *control) serve(cleanups cleaner, ready func(context.Context) error) error {
	c.ready = ready
	cleanups.Cleanup(func() { _ = c.process.stop() })
	return c.launch()
}

// launch starts the process and waits until it is ready.
func (c *control) launch() error {
	if err := c.process.start(); err != nil {
		return err
	}
	return c.await()
}

// await waits until the server is ready.
func (c *control) await() error {
	return poll(func() error {
		if err := c.process.alive(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return c.ready(ctx)
	})
}

// Restart ends the server if it runs, without a shutdown in order, starts it on the same
// port with the data that it has saved, and waits until it answers.
func (c *control) Restart(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().stop())
	must(tb, c.launch())
}

// Kill ends the server at once, as the end of its machine does: it gets no chance to say
// or to save anything.
func (c *control) Kill(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().kill())
}

// Pause freezes the server: connections stay open, new ones are accepted, but there are
// no replies. See Resume.
func (c *control) Pause(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().signalAll(sigPause))
}

// Resume lets a paused server go on.
func (c *control) Resume(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().signalAll(sigResume))
}

func (c *control) own() *process {
	if c.process == nil {
		panic("servers: the server of the environment cannot be controlled: use Start instead of Shared")
	}
	return c.process
}
