package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// always returns a handler with one outcome.
func always(out outcome) handler { return func(context.Context, *request) outcome { return out } }

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func marks(e *env) {
	own := []pair{{"idempotent-replayed", "true"}, {"idempotency-status", "unrecorded"}}
	for _, out := range []outcome{{header: own, trailer: own}, {header: own, early: true}, {code: 5, header: own, trailer: own}} {
		s := e.serve(setup{handler: always(out)})
		a := e.call(s, keyed("k"))
		if a.get("idempotent-replayed") != "" || a.get("idempotency-status") != "" {
			e.Errorf("the first answer is marked: %v, %v", a.header, a.trailer)
		}
		if a := e.call(s, keyed("k")); a.get("idempotent-replayed") != "true" || a.get("idempotency-status") != "" {
			e.Errorf("the replay is marked %v, %v", a.header, a.trailer)
		}
	}
}

func marker(e *env) {
	config := protocol.Config{Announce: protocol.Announcing{ReplayedHeader: "X-Order-Repeated"}}
	own := []pair{{"x-order-repeated", "handler"}, {"x-order", "1"}}
	s := e.serve(setup{Config: config, handler: always(outcome{header: own, trailer: own})})
	first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
	if first.get("x-order-repeated") != "" || first.get("x-order") != "1" {
		e.Errorf("the first answer has %v, %v", first.header, first.trailer)
	}
	if again.get("x-order-repeated") != "true" || again.replayed() || again.get("x-order") != "1" {
		e.Errorf("the replay has %v, %v", again.header, again.trailer)
	}
}

func message(e *env) {
	for _, body := range [][]byte{nil, allBytes(), []byte(strings.Repeat("x", 300_000))} {
		s := e.serve(setup{handler: always(outcome{body: body})})
		if first, _ := e.twice(s, keyed("k")); !bytes.Equal(first.body, body) {
			e.Errorf("the first call got %d bytes, want %d", len(first.body), len(body))
		}
	}
}

func metadataKept(e *env) {
	header := []pair{{"x-order", "1"}, {"x-order", "2, 3"}, {"x-raw-bin", string(allBytes())}, {"x-empty", ""}}
	for _, early := range []bool{false, true} {
		s := e.serve(setup{handler: always(outcome{header: header, early: early})})
		first, again := e.twice(s, keyed("k"))
		for _, a := range []answer{first, again} {
			if !slices.Equal(a.header["x-order"], []string{"1", "2, 3"}) || !slices.Equal(a.header["x-raw-bin"], []string{string(allBytes())}) ||
				!slices.Equal(a.header["x-empty"], []string{""}) || !slices.Equal(a.header["x-outer"], []string{"1"}) || a.header["x-late"] != nil {
				e.Errorf("early %v: the header is %q", early, a.header)
			}
		}
	}
}

func fieldsNotKept(e *env) {
	var header []pair
	for _, name := range []string{"traceparent", "x-request-id", "set-cookie", "access-control-allow-origin", "grpc-trace-bin", "grpc-previous-rpc-attempts"} {
		header = append(header, pair{name, "x"})
	}
	s := e.serve(setup{handler: always(outcome{header: append(header, pair{"x-order", "1"})})})
	_, again := e.twice(s, keyed("k"))
	for _, line := range header {
		if again.header[line.name] != nil {
			e.Errorf("%s is replayed", line.name)
		}
	}
	listed := e.serve(setup{
		Config:  protocol.Config{Keep: protocol.Keeping{Headers: []string{"X-Order"}}},
		handler: always(outcome{code: 5, message: "gone", header: []pair{{"x-order", "1"}}}),
	})
	e.twice(listed, keyed("k"))
}

func trailerKept(e *env) {
	trailer := []pair{{"x-sum", "abc"}, {"x-sum", "def"}, {"x-sum-bin", "\x00\xff"}}
	for _, early := range []bool{false, true} {
		s := e.serve(setup{handler: always(outcome{trailer: trailer, early: early})})
		first, again := e.twice(s, keyed("k"))
		for _, a := range []answer{first, again} {
			if !slices.Equal(a.trailer["x-sum"], []string{"abc", "def"}) || !slices.Equal(a.trailer["x-sum-bin"], []string{"\x00\xff"}) || a.header["x-sum"] != nil {
				e.Errorf("early %v: the trailer is %q, the header %q", early, a.trailer, a.header)
			}
		}
	}
}

func cancelled(e *env) {
	ended := make(chan error, 1)
	running, gate := make(chan struct{}), make(chan struct{})
	s := e.serve(setup{handler: func(ctx context.Context, _ *request) outcome {
		close(running)
		<-gate
		ended <- ctx.Err()
		return outcome{body: []byte("done")}
	}})
	ctx, cancel := context.WithCancel(e.Context())
	left := make(chan answer, 1)
	go func() { left <- s.call(ctx, keyed("k")) }()
	<-running
	cancel()
	if a := <-left; a.code != 1 {
		e.Errorf("the client that cancelled got %+v", a)
	}
	<-(*s.outer.Load()).Done() // the server knows
	close(gate)
	if err := <-ended; err != nil {
		e.Errorf("the context of the run is cancelled: %v", err)
	}
	e.replayOf(s, "done")
}

// replayOf calls until the record is complete, and wants its replay.
func (e *env) replayOf(s *service, body string) {
	e.Helper()
	for {
		a := e.call(s, keyed("k"))
		if a.code == aborted {
			continue
		}
		if string(a.body) != body || !a.replayed() {
			e.Errorf("the retry got %+v", a)
		}
		e.wantRuns(s, 1)
		return
	}
}

func deadline(e *env) {
	gate := make(chan struct{})
	s := e.serve(setup{handler: func(ctx context.Context, _ *request) outcome {
		<-gate
		if _, limited := ctx.Deadline(); limited || ctx.Err() != nil {
			return outcome{code: internal}
		}
		return outcome{body: []byte("done")}
	}})
	ctx, cancel := context.WithTimeout(e.Context(), 200*time.Millisecond)
	defer cancel()
	if a := s.call(ctx, keyed("k")); a.code != deadlineExceeded {
		e.Errorf("the client got %+v", a)
	}
	for s.runs.Load() == 0 { // a machine under load may not have sent the call at all
		if a := e.callFor(s, 200*time.Millisecond); a.code != deadlineExceeded {
			e.Fatalf("the client got %+v", a)
		}
	}
	<-(*s.outer.Load()).Done() // the server knows
	close(gate)
	e.replayOf(s, "done")
}

func (e *env) callFor(s *service, limit time.Duration) answer {
	ctx, cancel := context.WithTimeout(e.Context(), limit)
	defer cancel()
	return s.call(ctx, keyed("k"))
}

func statusCodes(e *env) {
	kept := map[uint32]bool{3: true, 5: true, 6: true, 7: true, 9: true, 10: true, 11: true} // Recoverable
	never := map[uint32]bool{8: true, 16: true}                                              // RESOURCE_EXHAUSTED and UNAUTHENTICATED, as 429 and 401
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		var code uint32
		s := e.serve(setup{
			Config:  protocol.Config{Preset: preset},
			handler: func(context.Context, *request) outcome { return outcome{code: code, message: "as told"} },
		})
		for code = 1; code <= 16; code++ {
			c, before := keyed("code-"+string(rune('a'+code))), s.runs.Load()
			first, again := e.call(s, c), e.call(s, c)
			e.same(first, again)
			want := kept[code] || preset == reprise.AtMostOnce && !never[code]
			if replayed := s.runs.Load()-before == 1; replayed != want || again.replayed() != want || first.code != code {
				e.Errorf("%v: the status %d is kept: %v, want %v; the first call got %d", preset, code, replayed, want, first.code)
			}
		}
	}
	decided := e.serve(setup{
		Config: protocol.Config{Keep: protocol.Keeping{Decide: func(e protocol.Ending) protocol.Decision {
			if e.Status == 404 {
				return protocol.ReleaseKey
			}
			return protocol.ByPreset
		}}},
		handler: always(outcome{code: 5}),
	})
	e.call(decided, keyed("k"))
	e.call(decided, keyed("k"))
	e.wantRuns(decided, 2)
}

func errorKept(e *env) {
	details := []proto.Message{durationpb.New(time.Hour), wrapperspb.Bytes(allBytes()), &emptypb.Empty{}}
	want := make([]string, len(details))
	for i, d := range details {
		want[i] = anyOf(d)
	}
	for _, early := range []bool{false, true} {
		s := e.serve(setup{handler: always(outcome{
			code: failedPrecondition, message: "sold out: ☃\n100 %", details: details, early: early,
			header: []pair{{"x-order", "1"}}, trailer: []pair{{"x-sum", "abc"}, {"x-sum-bin", "\x00"}},
		})})
		first, again := e.twice(s, keyed("k"))
		for _, a := range []answer{first, again} {
			if a.code != failedPrecondition || a.message != "sold out: ☃\n100 %" || !slices.Equal(a.details, want) {
				e.Errorf("the error is %d %q %v", a.code, a.message, a.details)
			}
			if a.get("x-order") != "1" || a.get("x-sum") != "abc" || a.get("x-sum-bin") != "\x00" || a.get("x-outer") != "1" {
				e.Errorf("early %v: the metadata of the error is %q, %q", early, a.header, a.trailer)
			}
		}
	}
}

func plainErrors(e *env) {
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		for err, code := range map[error]uint32{errors.New("plain"): 2, context.Canceled: 1, context.DeadlineExceeded: deadlineExceeded} {
			s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: always(outcome{err: err})})
			first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
			e.same(first, again)
			if first.code != code {
				e.Errorf("%v is sent as %d", err, first.code)
			}
			want := int32(2)
			if preset == reprise.AtMostOnce {
				want = 1
			}
			e.wantRuns(s, want)
		}
	}
}

func panics(e *env) {
	for preset, want := range map[reprise.Preset]int32{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: func(context.Context, *request) outcome { panic("handler") }})
		first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
		if first.code != internal || first.message != "recovered" || again.code != internal {
			e.Errorf("%v: the first call got %+v, the retry %+v", preset, first, again)
		}
		e.wantRuns(s, want)
	}
}

// nilError is the common mistake of a nil pointer that is returned as an error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func panickingErrors(e *env) {
	for preset, want := range map[reprise.Preset]int32{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: always(outcome{err: (*nilError)(nil)})})
		first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
		if first.code != internal || again.code != internal {
			e.Errorf("%v: the first call got %+v, the retry %+v", preset, first, again)
		}
		e.wantRuns(s, want)
	}
}

func codelessErrors(e *env) {
	failed := connect.NewError(0, errors.New("no code"))
	for preset, want := range map[reprise.Preset]int32{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: always(outcome{err: failed})})
		first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
		if first.code == 0 || again.code == 0 {
			e.Errorf("%v: the first call got %+v, the retry %+v", preset, first, again)
		}
		e.wantRuns(s, want)
	}
}

func cannotEncode(e *env) {
	for preset, want := range map[reprise.Preset]int32{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: always(outcome{text: "\xff"})})
		c := call{procedure: text, keys: []string{"k"}}
		first, again := e.call(s, c), e.call(s, c)
		if first.code != internal || preset == reprise.AtMostOnce && reasonOf(again) != "RESULT_UNAVAILABLE" {
			e.Errorf("%v: the first call got %+v, the retry %+v", preset, first, again)
		}
		e.wantRuns(s, want)
	}
}

func largeResponse(e *env) {
	for _, oversize := range []protocol.Oversize{protocol.Summary, protocol.Unavailable} {
		s := e.serve(setup{Config: protocol.Config{Limits: protocol.Limits{ResponseBody: 1000}, Oversize: oversize}, handler: always(outcome{body: make([]byte, 2000)})})
		if a := e.call(s, keyed("k")); len(a.body) != 2000 || a.code != 0 {
			e.Errorf("the first call got %d and %d bytes", a.code, len(a.body))
		}
		e.refused(s, keyed("k"), failedPrecondition, "RESULT_UNAVAILABLE")
	}
}

func decisions(e *env) {
	for name, c := range map[string]struct {
		decide func(context.Context) bool
		code   uint32
		runs   int32
		again  uint32
	}{
		"keep":    {protocol.Keep, 14, 1, 14},
		"release": {protocol.Release, 0, 2, 0},
		"omit":    {protocol.OmitBody, 0, 1, failedPrecondition},
		"unknown": {func(ctx context.Context) bool { return protocol.Unknown(ctx, "the bank timed out") }, 4, 1, failedPrecondition},
	} {
		s := e.serve(setup{handler: func(ctx context.Context, _ *request) outcome {
			if !c.decide(ctx) {
				return outcome{code: internal}
			}
			return outcome{code: c.code, body: []byte("done")}
		}})
		first, again := e.call(s, keyed("k")), e.call(s, keyed("k"))
		if first.code != c.code || again.code != c.again {
			e.Errorf("%s: the first call got %+v, the retry %+v", name, first, again)
		}
		if reason := reasonOf(again); name == "unknown" && reason != "OUTCOME_UNKNOWN" {
			e.Errorf("the retry of an unknown outcome got %s", reason)
		}
		e.wantRuns(s, c.runs)
	}
}

func attempt(e *env) {
	st, lose := losing()
	causes := make(chan error, 1)
	s := e.serve(setup{store: st, engine: reprise.Config{Lease: time.Second}, handler: func(ctx context.Context, _ *request) outcome {
		view, ok := reprise.AttemptFrom(ctx)
		if key, err := view.Key("charge"); !ok || view.Number() != 1 || key == "" || err != nil {
			return outcome{code: internal}
		}
		lose()
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return outcome{err: ctx.Err()}
	}})
	e.call(s, keyed("k"))
	if cause := <-causes; !errors.Is(cause, store.ErrLeaseLost) {
		e.Errorf("the cause is %v", cause)
	}
}
