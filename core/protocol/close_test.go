package protocol_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// counted is a stream that counts how often it is closed.
type counted struct {
	io.Reader

	closed *atomic.Int32
}

func (c counted) Close() error {
	c.closed.Add(1)
	return nil
}

// brittle is a writer that panics at a status, or at the first byte.
type brittle struct {
	*httptest.ResponseRecorder

	atStatus, atByte bool
}

func (b brittle) WriteHeader(status int) {
	if b.atStatus {
		panic(http.ErrAbortHandler)
	}
	b.ResponseRecorder.WriteHeader(status)
}

func (b brittle) Write(p []byte) (int, error) {
	if b.atByte {
		panic(http.ErrAbortHandler)
	}
	return b.ResponseRecorder.Write(p)
}

// left is a writer whose client has left.
type left struct{ *httptest.ResponseRecorder }

func (left) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Every stream that a guard hands out is closed once, wherever its response ends.
func TestEveryStreamIsClosedOnce(t *testing.T) {
	t.Parallel()
	var made, closed atomic.Int32
	stream := func(status int) protocol.Response {
		made.Add(1)
		return protocol.Response{Status: status, Stream: counted{strings.NewReader("problem"), &closed}, Length: 7}
	}
	wires := map[string]func() protocol.Wire{
		"written": func() protocol.Wire { return httptest.NewRecorder() },
		"gone":    func() protocol.Wire { return left{httptest.NewRecorder()} },
		"status":  func() protocol.Wire { return brittle{httptest.NewRecorder(), true, false} },
		"byte":    func() protocol.Wire { return brittle{httptest.NewRecorder(), false, true} },
	}
	check := func(name string, streams int32, send func()) {
		t.Helper()
		made.Store(0)
		closed.Store(0)
		func() {
			defer func() { _ = recover() }()
			send()
		}()
		if made.Load() != streams || closed.Load() != streams {
			t.Errorf("%s: %d streams were made, and closed %d times, want %d", name, made.Load(), closed.Load(), streams)
		}
	}
	for wire, open := range wires {
		for _, status := range []int{200, 204, 304, 503} {
			check(wire, 1, func() { stream(status).Write(http.Header{}, open()) })
		}
	}
	check("not written", 1, func() { stream(503).Close() })
	check("a reply that is not sent", 1, func() { protocol.Reply{Replace: true, Response: stream(503)}.Close() })
	check("a body that is not sent", 1, func() { protocol.Reply{Stream: stream(200).Stream}.Close() })

	b := setupOver(t, atomically{memstore.New()}, protocol.Config{
		Limits: protocol.Limits{ResponseBody: 10},
		Problems: protocol.ProblemFormat{Write: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response {
			return stream(503)
		}},
	})
	for name, handler := range map[string]func(*protocol.Recorder){
		"a body that is too long": func(rec *protocol.Recorder) { _, _ = rec.WriteString("longer than ten bytes") },
		"a panic after a byte":    func(rec *protocol.Recorder) { _, _ = rec.WriteString("byte"); panic(errors.New("late")) },
		"a connection that is taken": func(rec *protocol.Recorder) {
			rec.WriteHeader(http.StatusOK)
			rec.Hijack()
		},
	} {
		for wire, open := range wires {
			check(name+", "+wire, 1, func() {
				a := b.admit(rand.Text(), "body")
				if a.Exchange == nil {
					t.Fatalf("answered %+v", a.Response)
				}
				rec := new(protocol.Recorder)
				rec.Start(a.Exchange, http.Header{}, open(), nil)
				defer rec.Close()
				handler(rec)
				rec.Finish()
			})
		}
	}
}
