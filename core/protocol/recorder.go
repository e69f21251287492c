package protocol

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
)

// Wire is the way to the client as net/http and the frameworks on it have it.
type Wire interface {
	WriteHeader(status int)
	Write(p []byte) (int, error)
}

// Recorder stands between a handler and its [Wire]. It holds the response back until the
// attempt is resolved. A handler that flushes, or whose body grows over the limit,
// streams from then on, unless the effects commit with the response. Even then the last
// byte of a declared length, and a response without a body, wait for the attempt: no
// client has the whole response before. A write after the exchange was finished is
// refused. It is safe for concurrent use as far as the header map is.
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
	state    recording
	body     *Capture
	status   int   // 0: the handler has not written its header
	declared int64 // the Content-Length that the handler set; negative: none that is valid
	written  int64 // how much body the handler wrote, with what was beyond declared

	tail []byte // the last byte of a body that streams, if it was written; Close never sends it

	cut      bool  // the adapter says that the response was cut short
	reported error // the first error that stands beside the response
	left     bool  // its client left a body that is too long to be kept
	failed   int   // Writes that said so to the handler
}

// recording is the state of a Recorder.
type recording uint8

// The states, in the order in which a response passes them; it may leave out some.
const (
	open  recording = iota // the handler has not written its header
	held                   // status and header are the handler's, and wait with the body
	live                   // they have left, and the body follows as it is written
	taken                  // the handler took the connection
	ended                  // the response was answered, or abandoned
)

var (
	errEnded  = errors.New("reprise: response written after the request was answered")
	errTaken  = errors.New("reprise: response written after its connection was hijacked")
	errNoBody = errors.New("reprise: the response status does not allow a body")
	errLength = errors.New("reprise: response body longer than its declared Content-Length")
)

// Start starts to record the response that a handler writes. header is the map of fields
// that all layers share. sniff returns the media type of a body whose handler did not set
// one, as the framework would guess it; nil guesses none.
func (r *Recorder) Start(x *Exchange, header map[string][]string, wire Wire, sniff func([]byte) string) {
	r.x, r.header, r.wire, r.sniff, r.body = x, header, wire, sniff, x.Capture(-1)
	s := x.scratch
	s.outer = appendMap(s.outer[:0], header)
	s.places = appendPlaces(s.places[:0], header, s.outer)
}

// WriteHeader takes the status, and the header as it is now. An informational status is
// sent at once and is not final (R17). Only the first final status counts. A status that
// net/http does not send panics, as it does there.
func (r *Recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state != open:
	case status >= 100 && status < 200 && status != 101:
		r.wire.WriteHeader(status)
	default:
		r.commit(status)
	}
}

// Write takes a part of the body. It succeeds although the client has left: the handler
// continues, and its response is kept for the retry (R23). Only when the response streams
// and its body is too long to be kept, so that the rest is useless, Write fails as it
// does without the middleware.
func (r *Recorder) Write(p []byte) (int, error) { return write(r, p) }

// WriteString is Write for strings.
func (r *Recorder) WriteString(s string) (int, error) { return write(r, s) }

// ReadFrom takes the rest of the body from src, so that io.Copy does not bypass the
// Recorder.
func (r *Recorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, src)
}

func write[T []byte | string](r *Recorder, p T) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case ended:
		return 0, errEnded
	case taken:
		return 0, errTaken
	case open:
		r.commit(200)
	case held, live:
	}
	if len(p) > 0 && !syntax.AllowsBody(r.status) {
		return 0, errNoBody
	}
	r.written += int64(len(p))
	if r.declared >= 0 && r.written > r.declared {
		return 0, errLength
	}
	if r.body.size+int64(len(p)) > r.body.limit {
		r.overflow([]byte(p))
	}
	take(r.body, p)
	if r.state == live {
		if n, err := r.sendPart([]byte(p)); err != nil && r.body.Oversize() {
			r.failed++
			r.leave()
			return n, err
		}
	}
	return len(p), nil
}

// sendPart sends a part of the body. The last byte of a declared length waits until the
// response is recorded: a client that has it may send a retry at once. Where a layer
// outside took the length away, the end of the body waits.
func (r *Recorder) sendPart(p []byte) (int, error) {
	if last := len(p) - 1; r.state == live && last >= 0 && r.body.size == r.declared && r.header["Content-Length"] != nil {
		r.tail, p = append(r.tail, p[last]), p[:last]
	}
	if len(p) == 0 {
		return 0, nil
	}
	return r.wire.Write(p)
}

// leave remembers that the client has left: a handler that now breaks off reacts to that,
// and its operation is done.
func (r *Recorder) leave() {
	r.left = true
	r.x.left.Store(true)
}

// FlushFailed takes the error of a flush that followed Flush, and returns it where Write
// would fail, too; if not, it returns nil.
func (r *Recorder) FlushFailed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == taken || !r.body.Oversize() {
		return nil
	}
	r.leave()
	return err
}

// overflow lets a body leave that is too long for memory with its next part, unless the
// effects commit with it.
func (r *Recorder) overflow(next []byte) {
	if r.state != held || r.body.overflew {
		return
	}
	head := r.body.Bytes() // while its first bytes are at hand
	head = head[:min(len(head), sniffed)]
	r.nameType(append(slices.Clip(head), next[:min(len(next), sniffed-len(head))]...))
	if !r.x.Buffered() {
		r.goLive()
	}
}

// Flush sends the written part, and the rest of the response as it is written from now
// on. If the effects commit with the response, or it has no body, it sends no byte and
// returns false: only status and header are from then on as if they had left.
func (r *Recorder) Flush() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state >= taken:
		return false
	case r.state == open:
		r.commit(200)
	}
	if r.x.Buffered() || r.declared == 0 || !syntax.AllowsBody(r.status) {
		r.settleType()
		return false
	}
	r.goLive()
	return true
}

// FlushAll sends all that was written, for a handler that is to take the connection:
// no part of it waits for a record. It reports whether to flush the writers outside.
func (r *Recorder) FlushAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != held && r.state != live || r.x.Buffered() {
		return false
	}
	if r.goLive(); len(r.tail) == 0 {
		return false
	}
	_, _ = r.wire.Write(r.tail)
	r.tail = nil
	return true
}

// Hijack says that the handler took the connection: there is no response to keep.
func (r *Recorder) Hijack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == ended {
		return
	}
	r.state = taken
	r.x.dropSpool() // the handler may hold the connection for hours
}

// Cut says that the response is not the handler's, or not all of it, which the framework
// knows and the Recorder does not: a layer outside makes it, or the request of the
// handler is over. Such a response is never replayed (R33). An error beside a response is
// no such fact: see Report.
func (r *Recorder) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
}

// Report says that the handler reported err to its framework, or returned it after its
// first byte. Its client gets the response, so it is kept as it would be without err
// (R33d). Config.Keep.Decide is told of the first error, and so is the observer, if the
// response is no failure.
func (r *Recorder) Report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported == nil {
		r.reported = err
	}
}

// Status returns the final status that the handler wrote, 0 if it has not written one.
func (r *Recorder) Status() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// commit takes status and header as the handler's.
func (r *Recorder) commit(status int) {
	maps.DeleteFunc(r.header, func(name string, _ []string) bool { return record.IsControlField(name) }) // only the protocol sets those (R11)
	r.state, r.status, r.declared = held, status, -1
	if lines := r.header["Content-Length"]; len(lines) > 0 {
		if n, err := strconv.ParseInt(syntax.TrimSpace(lines[0]), 10, 64); err == nil && n >= 0 {
			r.declared = n
		}
	}
	committed := appendMap(r.x.scratch.committed[:0], r.header)
	for i := range committed {
		committed[i].Value = cleanValue(committed[i].Value)
	}
	r.x.scratch.committed = committed
	r.x.scratch.set = appendSet(r.x.scratch.set[:0], r.header, r.x.scratch.outer, r.x.scratch.places)
}

// goLive sends the part that was held back.
func (r *Recorder) goLive() {
	if r.state == live {
		return
	}
	r.state = live
	r.nameType(r.x.scratch.response)
	r.send(r.x.Mark(), nil)
}

// send sends the handler's own response, with the header as it was when the handler wrote
// it, and then the trailers that the handler has set until now. The body is stream, if
// that is not nil.
func (r *Recorder) send(mark Field, stream io.Reader) {
	s := r.x.scratch
	late := s.kept[:0]
	if r.x.version.sendsTrailers(r.status) {
		late = appendLate(late, r.header, r.announced())
	} // else a wire that holds its header back would send them as fields
	restore(r.header, s.committed)
	if mark.Name != "" {
		r.header[mark.Name] = []string{mark.Value}
	}
	r.wire.WriteHeader(r.status)
	_, _ = r.sendPart(s.response) // it does not matter whether the client is still there
	if stream != nil {
		_ = copyStream(r.wire, stream)
	}
	for _, t := range late {
		if !t.Add {
			delete(r.header, t.Name)
		}
		r.header[t.Name] = append(r.header[t.Name], t.Value)
	}
	s.kept = late
}

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
	// A body that was to be longer is whole without the writes that were refused, unless one
	// of them had its end in it.
	wrongLength := r.declared >= 0 && r.body.size != r.declared && syntax.AllowsBody(r.status)
	decided := false
	defer func() {
		if !decided && left == held { // Config.Keep.Decide panicked
			restore(r.header, s.outer)
		}
	}()
	reply := r.x.Finish(Captured{
		Status: r.status, Body: s.response, Oversize: left != taken && r.body.over(), Sent: left == live, Reported: r.reported,
		Cut: left == taken || r.cut || wrongLength && !r.heard(),
	})
	decided = true
	defer reply.Close()
	switch {
	case left == live:
		_, _ = r.sendPart(r.tail)
	case left == taken:
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

// Close closes the exchange. It is meant to be deferred before the handler runs. Without
// Finish before it, the handler did not return: it panicked, or ended its goroutine. Then
// Close finishes the exchange, and the panic continues. If no byte has been sent, the
// header is as it was before the handler, unless Cut says that it is not the handler's
// alone. A handler that ended because its client left a body that is too long to be kept
// has finished (R35).
func (r *Recorder) Close() {
	defer r.x.Close()
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

// heard reports whether the handler can have ended because its client left: one that
// writes on after a Write has failed ends for another reason.
func (r *Recorder) heard() bool { return r.left && r.failed < 2 }
