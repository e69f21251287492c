package protocol_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

func TestR11ControlFieldsOfTheHandlerAreRemoved(t *testing.T) {
	t.Parallel()
	first := setup(t, protocol.Config{}).run("k", func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("Idempotent-Replayed", "true")
		h["idempotency-status"] = []string{"forged"}
		w.WriteHeader(http.StatusOK)
	})
	if len(first.Header()) != 0 {
		t.Errorf("the handler's own marker was sent: %v", first.Header())
	}
}

func TestR35BodyOverTheLimit(t *testing.T) {
	t.Parallel()
	write := func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("Location", "/orders/1")
		h.Set("Content-Type", "text/plain")
		h.Set("Content-Length", "12")
		w.WriteHeader(http.StatusCreated)
		for range 3 {
			_, _ = w.WriteString("abcd")
		}
	}
	b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
	if first := b.run("k", write); first.Body.String() != "abcdabcdabcd" {
		t.Errorf("the client got %q", first.Body)
	}
	again := b.replay("k")
	h := again.Header()
	if again.Code != 201 || again.Body.String() != `{"status":"completed"}` || h.Get("Idempotency-Body") != "omitted" ||
		h.Get("Location") != "/orders/1" || h.Get("Content-Type") != "application/json" || h.Get("Content-Length") != "22" {
		t.Errorf("summary: %d %v %q", again.Code, h, again.Body)
	}

	b = setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}, Oversize: protocol.Unavailable})
	b.run("k", write)
	if again := b.run("k", nil); again.Code != 409 || !strings.Contains(again.Body.String(), "result-unavailable") {
		t.Errorf("unavailable: %d %q", again.Code, again.Body)
	}
	if at := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 12}}); at.run("k", write).Code == 201 && at.replay("k").Body.String() != "abcdabcdabcd" {
		t.Error("a body of exactly the limit was not kept")
	}
}

func TestR36HandlersDecide(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	respond := func(status int, decide func(context.Context) bool) func(*protocol.Recorder, http.Header, *protocol.Exchange) {
		return func(w *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
			if !decide(x.Context()) {
				t.Error("the decision found no exchange")
			}
			w.WriteHeader(status)
			_, _ = w.WriteString("text")
		}
	}
	b.run("keep", respond(500, protocol.Keep))
	if again := b.replay("keep"); again.Code != 500 {
		t.Errorf("keep: %d", again.Code)
	}
	b.run("omit", respond(200, protocol.OmitBody))
	if again := b.replay("omit"); again.Header().Get("Idempotency-Body") != "omitted" {
		t.Errorf("omit: %v", again.Header())
	}
	runs := 0
	for range 2 {
		b.run("release", func(w *protocol.Recorder, h http.Header, x *protocol.Exchange) {
			runs++
			respond(200, protocol.Release)(w, h, x)
		})
	}
	if runs != 2 {
		t.Errorf("release: the handler ran %d times, want 2", runs)
	}
	if protocol.Keep(t.Context()) {
		t.Error("a decision outside of an exchange was taken")
	}
}

func TestHeadersTooLargeAreNotKeptInPart(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	first := b.run("k", func(_ *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("X-Large", strings.Repeat("x", 20<<10))
	})
	if len(first.Header().Get("X-Large")) != 20<<10 {
		t.Error("the client did not get the response as it was")
	}
	if again := b.run("k", nil); again.Code != 409 {
		t.Errorf("retry: %d, want 409", again.Code)
	}
	if got := b.guard.Stats().HeadersTooLarge; got != 1 {
		t.Errorf("counted %d", got)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// P10: capturing 64 KiB costs no allocation that grows with it, once the buffers are
// there.
func TestP10CaptureAllocations(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("pools are not kept under the race detector; go test without -race counts")
	}
	b := setup(t, protocol.Config{})
	chunk := make([]byte, 4<<10)
	n := 0
	capture := func(size int) float64 {
		return testing.AllocsPerRun(100, func() {
			n++
			v := b.admit("key-"+strconv.Itoa(n), "body")
			rec := new(protocol.Recorder)
			rec.Start(v.Exchange, http.Header{}, discard{}, nil)
			for written := 0; written < size; written += len(chunk) {
				_, _ = rec.Write(chunk)
			}
			rec.Finish()
			v.Exchange.Close()
		})
	}
	least := func(size int) float64 { return min(capture(size), capture(size), capture(size)) } // a collection empties the pools
	small, large := least(4<<10), least(64<<10)
	if large > small+0.5 {
		t.Errorf("64 KiB cost %.1f allocations, 4 KiB %.1f", large, small)
	}
}

type discard struct{}

func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// R33: a length that the handler declared and did not keep.
func TestR33BodyOfAnotherLengthThanDeclared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		length string
		writes []string
		flush  bool
		kept   bool
		sent   string
	}{
		"exact":            {200, "6", []string{"abc", "def"}, false, true, "abcdef"},
		"shorter":          {200, "7", []string{"abc", "def"}, false, false, "abcdef"},
		"longer":           {200, "5", []string{"abc", "def"}, false, false, "abc"},
		"longer, in parts": {200, "6", []string{"abc", "def", "ghi"}, false, true, "abcdef"},
		"nothing":          {200, "5", nil, false, false, ""},
		"none":             {201, "0", nil, false, true, ""},
		"more than none":   {201, "0", []string{"x"}, false, true, ""},
		"streamed":         {200, "7", []string{"abc", "def"}, true, false, "abcdef"},
		"streamed, exact":  {200, "6", []string{"abc", "def"}, true, true, "abcdef"},
		"over the limit":   {200, "13", []string{"abcdefghijkl"}, false, false, "abcdefghijkl"},
		"not modified":     {304, "7", nil, false, true, ""},
		"not a number":     {200, "x", []string{"abc"}, false, true, "abc"},
		"negative":         {200, "-1", []string{"abc"}, false, true, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
			runs := 0
			handler := func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
				runs++
				h.Set("Content-Length", c.length)
				w.WriteHeader(c.status)
				for _, part := range c.writes {
					if _, err := w.WriteString(part); c.length == "0" && err == nil {
						t.Error("a body of no length is taken")
					}
					if c.flush {
						w.Flush()
					}
				}
			}
			first := httptest.NewRecorder()
			serve(first, b.admit("k", "body"), func(w *protocol.Recorder, h http.Header, x *protocol.Exchange) {
				if handler(w, h, x); first.Body.String() == c.sent && c.sent != "" && c.kept {
					t.Error("the whole body was sent before it was recorded")
				}
			})
			if got := first.Body.String(); got != c.sent || first.Header().Get("Content-Length") != c.length {
				t.Errorf("the first client got %q with the length %s, want %q", got, first.Header().Get("Content-Length"), c.sent)
			}
			b.run("k", handler)
			if kept := runs == 1; kept != c.kept {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
}

// R35: a handler whose client left a body that is too long to be kept has finished,
// however it ends, and is not run again.
func TestR35HandlerWhoseClientLeftHasFinished(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*protocol.Recorder){
		"with less than it declared": func(*protocol.Recorder) {},
		"with an error":              func(w *protocol.Recorder) { w.Report(io.ErrClosedPipe) },
		"with a panic":               func(*protocol.Recorder) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
			b.gone("k", func(w *protocol.Recorder, x *protocol.Exchange) {
				w.WriteHeader(http.StatusCreated)
				if protocol.ClientLeft(x.Context()) {
					t.Error("the client has not left yet")
				}
				if _, err := w.WriteString("12345678901"); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("a write that is neither kept nor sent: %v", err)
				}
				if !protocol.ClientLeft(x.Context()) {
					t.Error("the client has left")
				}
				end(w)
			})
			if again := b.replay("k"); again.Code != http.StatusCreated || again.Header().Get("Idempotency-Body") != "omitted" {
				t.Errorf("replayed %d %v", again.Code, again.Header())
			}
		})
	}
}

// A handler that writes on after a write has failed does not react to its client: it ends
// as it would have ended before one.
func TestR33HandlerThatWritesOnAfterItsClientLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*protocol.Recorder){
		"with less than it declared": func(*protocol.Recorder) {},
		"with a panic":               func(*protocol.Recorder) { panic("the transaction is rolled back") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
			for range 2 {
				b.gone("k", func(w *protocol.Recorder, _ *protocol.Exchange) {
					w.Flush()
					for range 3 {
						_, _ = w.WriteString("progress, progress")
					}
					end(w)
				})
			}
		})
	}
}

// A policy function that panics while a handler's panic passes takes nothing from it.
func TestHandlersPanicOutlivesThatOfDecide(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{
		Limits: protocol.Limits{ResponseBody: 10},
		Keep:   protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { panic("a bug") }},
	})
	a := b.admit("k", "body")
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the value itself
			t.Errorf("the handler's panic is %v", p)
		}
		if n, err := a.Exchange.Body().Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("the exchange is not closed: its body reads %d, %v", n, err)
		}
	}()
	var w protocol.Recorder
	w.Start(a.Exchange, http.Header{}, goneClient{}, nil)
	defer w.Close()
	_, _ = w.WriteString("12345678901")
	panic(http.ErrAbortHandler)
}

// A flush that fails is none of the handler's business, as long as the record has a use
// for what it writes.
func TestFlushFailsOnceTheRecordHasNoUseForTheBody(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
	a := b.admit("k", "body")
	defer a.Exchange.Close()
	var w protocol.Recorder
	w.Start(a.Exchange, http.Header{}, goneClient{}, nil)
	defer w.Close()
	_, _ = w.WriteString("1234567890")
	w.Flush()
	if err := w.FlushFailed(io.ErrClosedPipe); err != nil {
		t.Errorf("a flush of what is kept: %v", err)
	}
	_, _ = w.WriteString("1")
	if err := w.FlushFailed(io.ErrClosedPipe); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a flush of what is not kept: %v", err)
	}
}

// gone runs a handler that declares 100 bytes for a client that has left.
func (b *bench) gone(key string, handler func(*protocol.Recorder, *protocol.Exchange)) {
	b.t.Helper()
	a := b.admit(key, "body")
	wantRun(b.t, a)
	defer func() { _ = recover() }()
	var w protocol.Recorder
	w.Start(a.Exchange, http.Header{"Content-Length": {"100"}}, goneClient{}, nil)
	defer w.Close()
	handler(&w, a.Exchange)
	w.Finish()
}

// A layer outside that takes the length away, as compressors do, ends the body itself,
// also after a panic that another one recovers: its client cannot see that it is cut.
func TestR33PanicBehindACompressor(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	rec, wire := setup(t, protocol.Config{}).record("k", header)
	header.Set("Content-Length", "5")
	rec.Flush()
	header.Del("Content-Length")
	_, _ = rec.WriteString("whole")
	rec.Close()
	if sent := strings.Join(wire.parts, ""); sent != "whole" {
		t.Errorf("the client gets %q", sent)
	}
}

type goneClient struct{}

func (goneClient) WriteHeader(int)           {}
func (goneClient) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The guess of the media type is about the handler's bytes, even if an outer layer
// transforms them.
func TestR16MediaTypeBehindACompressor(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for _, replayed := range []string{"", "true"} {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Encoding", "gzip") // by the outer layer, for the transformed body
		serve(w, b.admit("k", "body"), func(rec *protocol.Recorder, _ http.Header, _ *protocol.Exchange) { _, _ = rec.WriteString("<html>") })
		h := w.Result().Header
		if h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Content-Encoding") != "gzip" || h.Get("Idempotent-Replayed") != replayed {
			t.Errorf("replayed %q: %v", replayed, h)
		}
	}
}

// Every response of gRPC has the status 200: its Grpc-Status decides.
func TestR31StatusOfGRPC(t *testing.T) {
	t.Parallel()
	for code, kept := range map[string]bool{"0": true, "3": true, "5": true, "14": false, "16": false, "8": false, "17": false, "99": false, "-1": false, "x": false} {
		b := setup(t, protocol.Config{})
		runs := 0
		for range 2 {
			b.run("k", func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
				runs++
				_, _ = w.WriteString("body")
				h.Set("Trailer:Grpc-Status", code)
			})
		}
		if (runs == 1) != kept {
			t.Errorf("Grpc-Status %s: the handler ran %d times", code, runs)
		}
	}
}

// A layer that recovers the panic of a policy writes its own response, without the
// handler's fields.
func TestR33PanicOfThePolicyLeavesTheOuterHeader(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { panic("a bug") }}})
	a := b.admit("k", "body")
	header := http.Header{"X-Outer": {"1"}}
	var w protocol.Recorder
	w.Start(a.Exchange, header, goneClient{}, nil)
	defer w.Close()
	header.Set("Content-Length", "4")
	_, _ = w.WriteString("body")
	func() {
		defer func() {
			if recover() != "a bug" {
				t.Error("the panic did not go on")
			}
		}()
		w.Finish()
	}()
	if len(header) != 1 || header.Get("X-Outer") != "1" {
		t.Errorf("the header is %v", header)
	}
}

// live is a wire that records the sent bytes, and when.
type live struct {
	header   http.Header
	statuses []int
	sent     []http.Header // with each status
	parts    []string
}

func (l *live) WriteHeader(status int) {
	l.statuses, l.sent = append(l.statuses, status), append(l.sent, l.header.Clone())
}

func (l *live) Write(p []byte) (int, error) {
	l.parts = append(l.parts, string(p))
	return len(p), nil
}

// record runs a handler over a wire, without its end.
func (b *bench) record(key string, outer http.Header) (*protocol.Recorder, *live) {
	b.t.Helper()
	a := b.admit(key, "body")
	wantRun(b.t, a)
	wire, rec := &live{header: outer}, new(protocol.Recorder)
	rec.Start(a.Exchange, outer, wire, http.DetectContentType)
	return rec, wire
}

// R17: an interim response leaves at once, and is never the recorded one. 101 is a final
// one.
func TestR17InterimResponsesLeaveAtOnce(t *testing.T) {
	t.Parallel()
	for status, interim := range map[int]bool{100: true, 102: true, 103: true, 199: true, 101: false, 200: false} {
		b := setup(t, protocol.Config{})
		rec, wire := b.record("k", http.Header{})
		rec.WriteHeader(status)
		if left := len(wire.statuses) == 1; left != interim || rec.Status() != 0 == interim {
			t.Errorf("%d: sent %v before the handler returned, and the status is %d", status, wire.statuses, rec.Status())
		}
		rec.WriteHeader(http.StatusCreated)
		rec.Finish()
		rec.Close()
		want := []int{status}
		if interim {
			want = []int{status, http.StatusCreated}
		}
		if !slices.Equal(wire.statuses, want) {
			t.Errorf("%d: sent %v, want %v", status, wire.statuses, want)
		}
		if status != 101 {
			if again := b.replay("k"); again.Code != want[len(want)-1] {
				t.Errorf("%d: replayed %d", status, again.Code)
			}
		}
	}
}

// A response that has no body accepts only empty writes.
func TestR16ResponseWithoutABody(t *testing.T) {
	t.Parallel()
	for _, status := range []int{204, 304} {
		b := setup(t, protocol.Config{})
		rec, wire := b.record("k", http.Header{})
		rec.WriteHeader(status)
		if n, err := rec.Write(nil); n != 0 || err != nil || rec.Flush() || len(wire.statuses) != 0 {
			t.Errorf("%d: nothing was written as %d, %v, and then %v sent before it was recorded", status, n, err, wire.statuses)
		}
		if n, err := rec.WriteString("x"); n != 0 || err == nil {
			t.Errorf("%d: a body was taken: %d, %v", status, n, err)
		}
		rec.Finish()
		rec.Close()
		if again := b.replay("k"); len(wire.parts) != 0 || again.Code != status || again.Body.Len() != 0 || len(again.Header()["Content-Length"]) != 0 {
			t.Errorf("%d: sent %q, replayed %d %v", status, wire.parts, again.Code, again.Header())
		}
	}
}

// A Flush sends the handler's status, or else 200, and the written bytes.
func TestR34FlushSendsTheWrittenPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*protocol.Recorder)
		status int
		parts  []string
		media  []string // of the response that left
	}{
		"nothing":  {func(*protocol.Recorder) {}, 200, nil, nil},
		"a status": {func(w *protocol.Recorder) { w.WriteHeader(http.StatusCreated) }, 201, nil, nil},
		"a body":   {func(w *protocol.Recorder) { _, _ = w.WriteString("<html>") }, 200, []string{"<html>"}, []string{"text/html; charset=utf-8"}},
	} {
		b := setup(t, protocol.Config{})
		rec, wire := b.record("k", http.Header{})
		c.before(rec)
		if !rec.Flush() || !slices.Equal(wire.statuses, []int{c.status}) || !slices.Equal(wire.parts, c.parts) || !slices.Equal(wire.sent[0]["Content-Type"], c.media) {
			t.Errorf("%s: sent %v %v %q", name, wire.statuses, wire.sent, wire.parts)
		}
		_, _ = rec.WriteString("<html>")
		rec.Finish()
		rec.Close()
		// A media type that was not sent is not replayed.
		if again := b.replay("k"); again.Code != c.status || !slices.Equal(again.Header()["Content-Type"], c.media) {
			t.Errorf("%s: replayed %d %v", name, again.Code, again.Header())
		}
	}
}

// R16: the media type is guessed by the first bytes of the body, and only where the
// handler has not coded them. A replay has it, or suppresses it so that no server
// guesses.
func TestR16MediaTypeIsThatOfTheFirstBytes(t *testing.T) {
	t.Parallel()
	const html = "text/html; charset=utf-8"
	for name, c := range map[string]struct {
		fields http.Header
		writes []string
		want   string
	}{
		"one write":             {nil, []string{"<html>"}, html},
		"two writes":            {nil, []string{"<html>", "plain"}, html},
		"more than is kept":     {nil, []string{"<html>plain"}, html},
		"more, later":           {nil, []string{"<html>", "plain"}, html},
		"coded":                 {http.Header{"Content-Encoding": {"gzip"}}, []string{"<html>"}, ""},
		"coded as nothing":      {http.Header{"Content-Encoding": {""}}, []string{"<html>"}, html},
		"coded for one hop":     {http.Header{"Transfer-Encoding": {"gzip"}}, []string{"<html>"}, ""},
		"named by the handler":  {http.Header{"Content-Type": {"a/b"}}, []string{"<html>"}, "a/b"},
		"suppressed":            {http.Header{"Content-Type": nil}, []string{"<html>"}, ""},
		"nothing is written":    {nil, nil, ""},
		"nothing, and then two": {nil, []string{"", "<html>"}, html},
	} {
		for _, limit := range []int{8, 100} {
			b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: limit}})
			first := b.run("k", func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
				maps.Copy(h, c.fields)
				for _, part := range c.writes {
					_, _ = w.WriteString(part)
				}
			})
			if got := first.Result().Header.Get("Content-Type"); got != c.want {
				t.Errorf("%s, up to %d bytes: %q, want %q", name, limit, got, c.want)
			}
			if limit == 100 {
				again := b.replay("k").Header()
				if _, there := again["Content-Type"]; again.Get("Content-Type") != c.want || there != (c.writes != nil) {
					t.Errorf("%s: replayed with %q, want %q", name, again["Content-Type"], c.want)
				}
			}
		}
	}
}

// The header of a handler that did not return is taken back, unless it has left or the
// connection is the handler's.
func TestR33HeaderOfAHandlerThatDidNotReturn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(*protocol.Recorder)
		stays bool
	}{
		"before its status": {func(*protocol.Recorder) {}, false},
		"after its status":  {func(w *protocol.Recorder) { w.WriteHeader(http.StatusCreated) }, false},
		"as a stream":       {func(w *protocol.Recorder) { w.Flush() }, true},
		"after a hijack":    {func(w *protocol.Recorder) { w.Hijack() }, true},
		"for another layer": {func(w *protocol.Recorder) { w.Cut() }, true},
	} {
		header := http.Header{"X-Outer": {"1"}}
		rec, _ := setup(t, protocol.Config{}).record("k", header)
		header.Set("X-Own", "1")
		c.do(rec)
		rec.Close()
		if _, there := header["X-Own"]; there != c.stays || header.Get("X-Outer") != "1" {
			t.Errorf("%s: the header is %v", name, header)
		}
	}
}

// R17: trailers are replayed as trailers. A field with two values has both of them, first
// and replayed, and none of the header's values under its name.
func TestR17TrailersAreReplayedAsTrailers(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Keep: protocol.Keeping{Headers: []string{}}})
	handler := func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("Trailer", "X-Sum, x-other")
		_, _ = w.WriteString("body")
		h["X-Sum"] = []string{"a", "b"}
		h.Set("X-Other", "c")
		h.Set("Trailer:Grpc-Status", "0")
		h.Set("Trailer:Set-Cookie", "session=secret")
		h.Set("X-Late", "no trailer")
	}
	first, again := b.run("k", handler).Result(), b.replay("k").Result()
	for _, r := range []*http.Response{first, again} {
		if !slices.Equal(r.Trailer["X-Sum"], []string{"a", "b"}) || r.Trailer.Get("X-Other") != "c" || r.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("the trailer is %v", r.Trailer)
		}
	}
	if first.Trailer.Get("Set-Cookie") == "" || again.Trailer.Get("Set-Cookie") != "" { // R14
		t.Errorf("the trailers are %v, and then %v", first.Trailer, again.Trailer)
	}
	if again.Header.Get("X-Sum")+again.Header.Get("X-Other")+again.Header.Get("X-Late")+again.Header.Get("Content-Length") != "" {
		t.Errorf("replayed header %v", again.Header)
	}
	header := http.Header{"X-Sum": {"of an outer layer"}}
	wire := &live{header: header}
	protocol.Response{
		Status: 200, Body: []byte("body"),
		Trailer: protocol.NewHeader(protocol.Field{Name: "X-Sum", Value: "a"}, protocol.Field{Name: "X-Sum", Value: "b", Add: true}),
	}.Write(header, wire)
	if !slices.Equal(header[http.TrailerPrefix+"X-Sum"], []string{"a", "b"}) || header["X-Sum"] != nil || wire.sent[0].Get("Trailer") != "X-Sum" || wire.sent[0].Get("Content-Length") != "" {
		t.Errorf("sent %v, and then %v", wire.sent, header)
	}
}

// R13: of a header that outer layers share, the changes from inside are kept: a field
// that the handler set, also to the value that an outer layer had set, and one that it
// removed. The replay's outer layer may set another value.
func TestR13OnlyWhatTheHandlerChangedIsKept(t *testing.T) {
	t.Parallel()
	const field = "Content-Language"
	for name, row := range map[string]struct {
		handler func(http.Header)
		want    []string
	}{
		"set":             {func(h http.Header) { h.Set(field, "en") }, []string{"en"}},
		"set anew":        {func(h http.Header) { h.Del(field); h.Add(field, "en") }, []string{"en"}},
		"added to":        {func(h http.Header) { h.Add(field, "fr") }, []string{"de", "fr"}},
		"left":            {func(h http.Header) { h.Set("X-Other", "1") }, []string{"de"}},
		"replaced by two": {func(h http.Header) { h[field] = []string{"x", "en"} }, []string{"x", "en"}},
		"removed":         {func(h http.Header) { h.Del(field) }, nil},
	} {
		b := setup(t, protocol.Config{})
		var again http.Header
		for _, language := range []string{"en", "de"} {
			w := httptest.NewRecorder()
			maps.Copy(w.Header(), http.Header{field: {language}, "Vary": {"Origin"}})
			serve(w, b.admit("k", "body"), func(rec *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
				row.handler(h)
				h["Link"] = []string{"b", "a"}
				_, _ = rec.WriteString("body")
			})
			again = w.Result().Header
		}
		if !slices.Equal(again[field], row.want) || !slices.Equal(again["Vary"], []string{"Origin"}) || !slices.Equal(again["Link"], []string{"b", "a"}) {
			t.Errorf("%s: the replay has %v, want %v", name, again, row.want)
		}
	}
}
