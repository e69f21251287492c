package stack

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// Late is a handler that outlives a timeout outside of the middleware.
type Late struct {
	started chan struct{}
	proceed chan struct{}
	ended   chan struct{}
	runs    atomic.Int64
}

// Wait is called by the handler before it answers 201 with the text "done".
func (l *Late) Wait() {
	l.runs.Add(1)
	l.started <- struct{}{}
	<-l.proceed
}

// Ended is called when the middleware has returned.
func (l *Late) Ended() { l.ended <- struct{}{} }

// RunLate sends a request whose handler is late. serve serves it for POST at / behind a
// layer with a short timeout that responds with the status; the retry has to get the
// handler's answer and must not run it again. shared says that the layer leaves the
// framework's own context to the handler, so that no other request may come before the
// handler returned.
func RunLate(t *testing.T, status int, shared bool, serve func(t *testing.T, guard *protocol.Guard, late *Late) (addr string)) {
	t.Helper()
	late := &Late{started: make(chan struct{}, 8), proceed: make(chan struct{}), ended: make(chan struct{}, 8)}
	c := client{t: t, addr: serve(t, Guard(t), late)}
	if first := c.send("", "late"); first.err != nil || first.status != status {
		t.Errorf("the layer answered %d %q, %v, want %d", first.status, first.body, first.err, status)
	}
	<-late.started
	if !shared {
		if again := c.send("", "late"); again.status != http.StatusConflict {
			t.Errorf("the retry got %d %q while the handler runs, want 409", again.status, again.body)
		}
		<-late.ended
	}
	close(late.proceed)
	<-late.ended
	if again := c.send("", "late"); !again.replayed || again.status != http.StatusCreated || again.body != "done" {
		t.Errorf("the retry got %d %q, want the handler's answer", again.status, again.body)
	}
	if n := late.runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want 1", n)
	}
}
