package protocol

import (
	"strconv"

	"github.com/reprise-go/reprise/core/internal/syntax"
)

// How a Recorder ends: its handler returned, or did not.

// Finish finishes the exchange after the handler returned, and sends the response. Only
// the first call has an effect. It panics if Config.Keep.Decide does.
func (r *Recorder) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == ended {
		return
	}
	if r.state == open {
		r.commit(200)
	}
	s, left := r.x.scratch, r.state
	if left == held {
		r.nameType(s.response)
	}
	s.trailers = appendTrailers(s.trailers[:0], r.header, r.announced(), r.x.version)
	r.x.trailersLost = !r.sendsTrailers()
	r.state = ended
	decided := false
	defer func() {
		if !decided && left == held { // Config.Keep.Decide panicked
			restore(r.header, s.outer)
		}
	}()
	reply := r.x.Finish(Captured{
		Status: r.status, Body: s.response, Oversize: left != taken && r.body.over(), Sent: left == live, Reported: r.reported,
		Cut: left == taken || r.cut || !r.heard() && r.wrongLength(),
	})
	decided = true
	defer reply.Close()
	switch {
	case left != held:
	case reply.Replace:
		restore(r.header, s.outer)
		reply.Response.write(r.header, r.wire)
	default:
		if reply.Stream != nil && r.declared < 0 && !r.cut && syntax.AllowsBody(r.status) {
			// so that a body that breaks off is not taken for whole
			s.committed = append(s.committed, Field{Name: "Content-Length", Value: strconv.FormatInt(reply.Length, 10)})
		}
		r.send(reply.Mark, reply.Stream)
	}
}

// wrongLength reports whether the body is shorter than the handler declared. One that was
// to be longer is whole without the writes that were refused, unless one of them had its
// end in it.
func (r *Recorder) wrongLength() bool {
	return r.declared >= 0 && r.body.size != r.declared && syntax.AllowsBody(r.status)
}

// Abandon finishes the exchange of a handler that did not return: it panicked, or ended
// its goroutine. The panic continues. If no byte has been sent, the header is as it was
// before the handler, unless Cut says that it is not the handler's alone. A handler that
// ended because its client left a body that is too long to be kept has finished (R35).
// After Finish it is a no-op, so that it can be deferred; Close calls it.
func (r *Recorder) Abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.state
	if left == ended {
		return
	}
	r.state = ended
	r.x.dropSpool()
	if r.heard() && left != taken { // as frameworks end a copy that fails: the operation was done before its response
		defer func() { _ = recover() }() // of Config.Keep.Decide: the end of the handler goes on
		r.x.Finish(Captured{Status: r.status, Sent: left == live, Oversize: true, Reported: r.reported}).Close()
		return
	}
	started := left != open || r.cut
	r.x.Finish(Captured{Status: r.status, Sent: left == live, Panicked: !started, Cut: started}).Close()
	if (left == open || left == held) && !r.cut {
		restore(r.header, r.x.scratch.outer)
	}
}

// Close abandons a run that was not finished, and closes the exchange. It is meant to be
// deferred before the handler runs.
func (r *Recorder) Close() {
	defer r.x.Close()
	r.Abandon()
}

// heard reports whether the handler can have ended because its client left: one that
// writes on after a Write has failed ends for another reason.
func (r *Recorder) heard() bool { return r.left && r.failed < 2 }
