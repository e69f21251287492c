package protocol

import (
	"errors"
	"io"
	"sync"
)

// Wire is the way to the client as net/http and the frameworks on it have it.
type Wire interface {
	WriteHeader(status int)
	Write(p []byte) (int, error)
}

// Recorder stands between a handler and its [Wire]. It holds the response back until the
// attempt is resolved. A handler that flushes, or whose body grows over the limit, streams
// from then on, unless the effects commit with the response. What is written after the
// exchange was finished is refused. It is safe for concurrent use as far as the header map is.
//
// An adapter embeds a Recorder in the writer that it gives to the handler, and then calls
// Start, Finish after the handler returned, and Close in any case:
//
//	w := &writer{behind: behind}
//	w.Recorder.Start(exchange, behind.Header(), behind, http.DetectContentType)
//	defer w.Recorder.Close()
//	next.ServeHTTP(w, r)
//	w.Recorder.Finish()
type Recorder struct {
	x      *Exchange
	header map[string][]string
	wire   Wire
	sniff  func([]byte) string

	mu       sync.Mutex
	status   int  // 0: the handler has not written its header
	live     bool // the header has left, and the body follows as it is written
	oversize bool
	taken    bool // the handler took the connection
	cut      bool // the response is not whole, or not known
	finished bool
}

var (
	errEnded  = errors.New("reprise: response written after the request was answered")
	errTaken  = errors.New("reprise: response written after its connection was hijacked")
	errNoBody = errors.New("reprise: the response status does not allow a body")
)

// Start starts to record the response that a handler writes. header is the map of fields that
// all layers share. sniff returns the media type of a body whose handler did not set one, as
// the framework would guess it; nil guesses none.
func (r *Recorder) Start(x *Exchange, header map[string][]string, wire Wire, sniff func([]byte) string) {
	r.x, r.header, r.wire, r.sniff = x, header, wire, sniff
	x.scratch.outer = appendMap(x.scratch.outer[:0], header)
}

// WriteHeader takes the status and the header as it is now. An informational status goes out at once and decides nothing (R17). Only
// the first final status counts.
func (r *Recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.finished, r.taken, r.status != 0:
	case status >= 100 && status < 200 && status != 101:
		r.wire.WriteHeader(status)
	default:
		r.commit(status)
	}
}

// Write takes a part of the body. A client that is gone is no error: the handler goes on, and its answer is kept for
// the retry (R23).
func (r *Recorder) Write(p []byte) (int, error) { return write(r, p) }

// WriteString is Write for strings.
func (r *Recorder) WriteString(s string) (int, error) { return write(r, s) }

// ReadFrom takes the rest of the body from src, so that io.Copy does not look for another way to the connection.
func (r *Recorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, src)
}

func write[T []byte | string](r *Recorder, p T) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.finished:
		return 0, errEnded
	case r.taken:
		return 0, errTaken
	case r.status == 0:
		r.commit(200)
	}
	if len(p) > 0 && !allowsBody(r.status) {
		return 0, errNoBody
	}
	s := r.x.scratch
	if !r.oversize && len(s.response)+len(p) > r.x.guard.cfg.MaxResponseBody {
		r.oversize = true
		if !r.x.Buffered() {
			r.goLive()
		}
		s.response = s.response[:0]
	}
	if !r.oversize {
		s.response = append(s.response, p...)
	}
	if r.live {
		_, _ = r.wire.Write([]byte(p))
	}
	return len(p), nil
}

// Flush makes the response leave as it is written from now on, and reports whether it does: not before its effects are
// committed.
func (r *Recorder) Flush() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished || r.taken || r.x.Buffered() {
		return false
	}
	if r.status == 0 {
		r.commit(200)
	}
	r.goLive()
	return true
}

// Hijack tells that the handler took the connection: there is no response to keep.
func (r *Recorder) Hijack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
}

// Cut says that the response is not whole, or that the adapter does not know it, so that no
// replay may pass for it (R33). The client gets what was written; the preset decides about the key.
func (r *Recorder) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
}

// Status returns the final status that the handler wrote, 0 if it did not yet.
func (r *Recorder) Status() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Finish ends the exchange after the handler returned, and sends what there is to send. Calling it again does nothing.
func (r *Recorder) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	r.finished = true
	if r.status == 0 && !r.taken {
		r.commit(200)
	}
	s := r.x.scratch
	if !r.live && !r.taken {
		r.nameType()
	}
	reply := r.x.Finish(Captured{Status: r.status, Body: s.response, Oversize: r.oversize, Sent: r.live, Cut: r.taken || r.cut})
	switch {
	case r.live, r.taken:
	case reply.Replace:
		restore(r.header, s.outer)
		WriteResponse(r.header, r.wire, reply.Response)
	default:
		r.send(reply.Mark)
	}
}

// Abandon ends the exchange of a handler that did not return: it panicked, or ended its goroutine. The panic goes on; where
// nothing has left, the header is as it was before the handler. After Finish it does nothing, so that it can be deferred.
func (r *Recorder) Abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return
	}
	r.finished = true
	started := r.status != 0 || r.taken || r.cut
	r.x.Finish(Captured{Status: r.status, Sent: r.live, Panicked: !started, Cut: started})
	if !r.live && !r.taken {
		restore(r.header, r.x.scratch.outer)
	}
}

// Close abandons a run that was not finished, and closes the exchange. It is meant to be
// deferred, before the handler runs.
func (r *Recorder) Close() {
	r.Abandon()
	r.x.Close()
}

// commit takes status and header as the handler's.
func (r *Recorder) commit(status int) {
	dropControlFields(r.header)
	r.status = status
	r.x.scratch.committed = appendMap(r.x.scratch.committed[:0], r.header)
}

// goLive sends what was held back.
func (r *Recorder) goLive() {
	if r.live {
		return
	}
	r.live = true
	r.nameType()
	r.send(r.x.Mark())
}

// send sends the handler's own response, with the header as it was when the handler wrote it, and sets the trailers that came later.
func (r *Recorder) send(mark Field) {
	s := r.x.scratch
	trailers := appendTrailers(s.kept[:0], r.header)
	restore(r.header, s.committed)
	if mark.Name != "" {
		r.header[mark.Name] = []string{mark.Value}
	}
	r.wire.WriteHeader(r.status)
	if len(s.response) > 0 {
		_, _ = r.wire.Write(s.response) // whether the client is still there changes nothing
	}
	for _, t := range trailers {
		if !t.Add {
			delete(r.header, t.Name)
		}
		r.header[t.Name] = append(r.header[t.Name], t.Value)
	}
	s.kept = trailers
}

// nameType adds the media type that the framework would guess, so that a replay has the one of the first answer.
func (r *Recorder) nameType() {
	s := r.x.scratch
	if r.sniff == nil || len(s.response) == 0 || !allowsBody(r.status) {
		return
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Transfer-Encoding"} {
		if group(s.committed, name) != nil {
			return
		}
	}
	if values, there := r.header["Content-Type"]; there && len(values) == 0 {
		return // the handler asked for none
	}
	s.committed = append(s.committed, Field{Name: "Content-Type", Value: r.sniff(s.response)})
}
