package simulator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// program is the behaviour of a handler.
type program struct {
	status  int
	takes   time.Duration
	ignores bool   // its context
	ends    ending // how it leaves
	decides string // "", keep, release, omit or unknown
	size    int    // of its body at least
}

// forever is longer than any handler is let run, by default too.
const forever = 3 * time.Hour

type ending string

const (
	returns ending = "returns"
	panics  ending = "panics" // before any byte
	exits   ending = "ends its goroutine"
	aborts  ending = "aborts" // after some bytes
	streams ending = "streams"
	short   ending = "declares more bytes than it writes"
)

func drawProgram(d dice) program {
	p := program{status: 201, ends: returns, ignores: d.percent(40)}
	p.takes = of(d, 0, 0, 100*time.Millisecond, 1500*time.Millisecond, 3*time.Second, 6*time.Second)
	if d.percent(4) {
		p.takes = of(d, 20*time.Second, 100*time.Second)
	}
	if d.IntN(1000) == 0 {
		p.takes = forever
	}
	if d.percent(35) {
		p.status = of(d, 200, 204, 303, 307, 308, 400, 401, 408, 409, 422, 425, 429, 499, 500, 502, 503, 503)
	}
	if d.percent(15) {
		p.ends = of(d, panics, exits, aborts, streams, short)
	}
	if p.ends == short {
		p.status = 201 // one that has a body
	}
	if d.percent(12) {
		p.decides = of(d, "keep", "release", "omit", "unknown", "unknown")
	}
	if d.percent(10) {
		p.size = 300
	}
	return p
}

// String returns the program without the parts that are as usual.
func (p program) String() string {
	return fmt.Sprintf("handler: %d after %v", p.status, p.takes) + when(p.ends != returns, string(p.ends)) +
		when(p.decides != "", "decides "+p.decides) + when(p.size > 0, fmt.Sprintf("%d bytes", p.size)) + when(p.ignores, "ignores its context")
}

// run is one execution of the handler with a key.
type run struct {
	n           int
	request     *request
	process     *process
	policy      *protocol.Config
	id          store.ID
	ctx         context.Context
	attempt     int
	fence       uint64
	unprotected bool
	start, end  time.Duration
	returned    bool
	told        bool   // to stop, before it returned
	body        string // of its response
	crashed     bool   // it ended because its process did
}

// serve is the handler inside all layers. What it sees and does is judged as it happens.
func (w *world) serve(rw http.ResponseWriter, hr *http.Request) {
	q, ctx := hr.Context().Value(requestKey{}).(*request), hr.Context()
	view, keyed := reprise.AttemptFrom(ctx)
	n := 0
	if keyed {
		body, _ := io.ReadAll(hr.Body)
		r := w.began(ctx, q, view, string(body))
		n = r.n
		defer w.ended(r)
	} else {
		w.mu.Lock()
		q.process.passed++
		w.mu.Unlock()
	}
	p := q.program
	if !w.work(ctx, q.process, p) {
		return // the process crashed: its response reaches no one
	}
	switch p.decides {
	case "keep":
		protocol.Keep(ctx)
	case "release":
		protocol.Release(ctx)
	case "omit":
		protocol.OmitBody(ctx)
	case "unknown":
		protocol.Unknown(ctx, "drawn")
	}
	switch p.ends {
	case panics:
		panic(drawnPanic)
	case exits:
		runtime.Goexit()
	default:
	}
	text := bodyOf(n, p)
	h := rw.Header()
	h.Set(runField, strconv.Itoa(n))
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if p.ends == short {
		h.Set("Content-Length", "1000")
	}
	rw.WriteHeader(p.status)
	_, _ = io.WriteString(rw, text[:len(text)/2])
	if p.ends == aborts {
		panic(http.ErrAbortHandler)
	}
	if p.ends == streams {
		_ = http.NewResponseController(rw).Flush()
	}
	_, _ = io.WriteString(rw, text[len(text)/2:])
}

// bodyOf returns the body of a run's response. Each run has its own.
func bodyOf(n int, p program) string {
	if p.status == http.StatusNoContent {
		return ""
	}
	return fmt.Sprintf("response of run %d. %s", n, strings.Repeat("x", p.size))
}

const drawnPanic = "drawn"

type requestKey struct{}

// work lets the time of a handler pass, and reports false when its process crashed.
func (w *world) work(ctx context.Context, p *process, program program) bool {
	told := ctx.Done()
	if program.ignores {
		told = nil
	}
	timer := time.NewTimer(program.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-told:
	case <-p.dead:
	}
	p.awake() // it continues, or finds that it was cancelled, not before
	return !p.isDead()
}
