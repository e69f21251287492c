package protocol_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
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
		"gone":    func() protocol.Wire { return goneClient{} },
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

	b := setupOver(t, atomically(memstore.New()), protocol.Config{
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
				wantRun(t, a)
				rec := new(protocol.Recorder)
				rec.Start(a.Exchange, http.Header{}, open(), nil)
				defer rec.Close()
				handler(rec)
				rec.Finish()
			})
		}
	}
}

// Requests use the buffers of those before them. The tests below show that no
// reference to an ended request affects the next one: a handler that goes on, a client
// that left, a request that waited. Package reprise tests the references of the engine.

// echo sends a request whose handler echoes its body, and fails the test unless the
// client gets that, and a retry too. meanwhile is called between the handler's reading
// and its writing.
func (b *bench) echo(key, body string, meanwhile func(*protocol.Exchange)) {
	b.t.Helper()
	for _, replayed := range []string{"", "true"} {
		w := httptest.NewRecorder()
		serve(w, b.admit(key, body), func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
			read, err := io.ReadAll(x.Body())
			if err != nil {
				b.t.Error(err)
			}
			meanwhile(x)
			_, _ = rec.Write(read)
		})
		if got := w.Body.String(); got != body || w.Header().Get("Idempotent-Replayed") != replayed {
			b.t.Errorf("%s: answered %.20q, replayed %q, want %.20q, %q", key, got, w.Header().Get("Idempotent-Replayed"), body, replayed)
		}
	}
}

// bodyOf is the body of the nth request: long enough that buffers are used again.
func bodyOf(n int) string { return strings.Repeat(fmt.Sprintf("%06d", n), 300) }

func TestAbandonedHandlerDoesNotAffectTheNextRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	stop := make(chan struct{})
	var left sync.WaitGroup
	goOn := func(rec *protocol.Recorder, x *protocol.Exchange) {
		buf := make([]byte, 64)
		for {
			select {
			case <-stop:
				return
			default:
			}
			ctx := x.Context()
			if n, err := x.Body().Read(buf); n > 0 || err == nil {
				t.Errorf("read %q after the request", buf[:n])
				return
			}
			if n, err := rec.WriteString("late"); n > 0 || err == nil {
				t.Error("wrote after the request")
				return
			}
			rec.WriteHeader(http.StatusTeapot)
			rec.Finish()
			rec.Close()
			if rec.Flush() || protocol.Release(ctx) || protocol.Keep(ctx) || protocol.OmitBody(ctx) {
				t.Error("decided after the request")
				return
			}
			if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 || !errors.Is(context.Cause(ctx), context.Canceled) {
				t.Errorf("the context is that of attempt %v, %t: %v", view, ok, context.Cause(ctx))
				return
			}
		}
	}
	for n := range 4 {
		ended := make(chan struct{})
		b.run(fmt.Sprint("kept-", n), func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
			_, _ = rec.WriteString(bodyOf(n))
			left.Go(func() {
				<-ended
				goOn(rec, x)
			})
		})
		close(ended)
	}
	for n := range 300 {
		b.echo(fmt.Sprint("next-", n), bodyOf(n), func(*protocol.Exchange) {})
	}
	close(stop)
	left.Wait()
	for n := range 4 {
		if got := b.replay(fmt.Sprint("kept-", n)).Body.String(); got != bodyOf(n) {
			t.Errorf("kept %.20q, want %.20q", got, bodyOf(n))
		}
	}
}

// Clients that leave while they wait give their buffers back once, and get no run.
func TestDisconnectDoesNotAffectTheNextRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Wait: time.Minute})
	for n := range 30 {
		key := fmt.Sprint("k-", n)
		ctx, leave := context.WithCancel(t.Context())
		run := b.admitIn(ctx, key, strings.NewReader("runs"))
		wantRun(t, run)
		var waits sync.WaitGroup
		for range 2 {
			waits.Go(func() {
				if v := b.admitIn(ctx, key, strings.NewReader("runs")); v.Exchange != nil || v.Response.Status != http.StatusConflict {
					t.Errorf("a client that left was answered %d", v.Response.Status)
				}
			})
		}
		leave() // all three clients
		waits.Wait()
		// Requests side by side, so that a buffer that came back twice has two users.
		var others sync.WaitGroup
		for i := range 3 {
			others.Go(func() {
				b.echo(fmt.Sprintf("next-%d-%d", n, i), bodyOf(3*n+i), func(*protocol.Exchange) { time.Sleep(100 * time.Microsecond) })
			})
		}
		others.Wait()
		body, err := io.ReadAll(run.Exchange.Body())
		if string(body) != "runs" || err != nil || run.Exchange.Context().Err() != nil {
			t.Errorf("the handler whose client left reads %.20q, %v, and its context is %v", body, err, run.Exchange.Context().Err())
		}
		finish(run.Exchange, http.StatusOK)
	}
}
