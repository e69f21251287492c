package servers

import "testing"

// control lets a test stop, freeze and kill a server that it started. A call for a server
// that the test did not start is a mistake of the test, and panics.
type control struct{ process *process }

// Kill ends the server at once, as the end of its machine does: it gets no chance to say
// or to save anything.
func (c control) Kill(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().kill())
}

// Pause freezes the server: connections stay open, new ones are accepted, but there are
// no replies. See Resume.
func (c control) Pause(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().signalAll(sigPause))
}

// Resume lets a paused server go on.
func (c control) Resume(tb testing.TB) {
	tb.Helper()
	must(tb, c.own().signalAll(sigResume))
}

// Log returns the server's log; empty for a server that was not started here.
func (c control) Log() string {
	if c.process == nil {
		return ""
	}
	return c.process.output()
}

func (c control) own() *process {
	if c.process == nil {
		panic("servers: the server of the environment cannot be controlled: use Start instead of Shared")
	}
	return c.process
}
