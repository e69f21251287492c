package edges_test

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

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
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
		err := ctx.Err()
		if _, limited := ctx.Deadline(); limited {
			err = errors.New("the run has the client's deadline")
		}
		ended <- err
		return outcome{body: []byte("done")}
	}})
	ctx, cancel := context.WithTimeout(e.Context(), time.Hour)
	defer cancel()
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
		e.Errorf("the context of the run: %v", err)
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

func attempt(e *env) {
	st, faults := faultstore.New(memstore.New())
	causes := make(chan error, 1)
	s := e.serve(setup{store: st, engine: reprise.Config{Lease: time.Second}, handler: func(ctx context.Context, _ *request) outcome {
		view, ok := reprise.AttemptFrom(ctx)
		if key, err := view.Key("charge"); !ok || view.Number() != 1 || key == "" || err != nil {
			return outcome{code: internal}
		}
		faults.Always(faultstore.Renew, faultstore.FailBefore(store.ErrUnavailable)) // so that the lease is lost
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return outcome{err: ctx.Err()}
	}})
	e.call(s, keyed("k"))
	if cause := <-causes; !errors.Is(cause, store.ErrLeaseLost) {
		e.Errorf("the cause is %v", cause)
	}
}

// nilError is the common mistake of a nil pointer that is returned as an error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// failures are the ways of a handler to fail without a status of its own.
func failures(e *env) {
	for name, c := range map[string]struct {
		handler handler
		code    uint32 // 0: any but success
		text    bool   // the call is one of Text
	}{
		"a panic":                     {func(context.Context, *request) outcome { panic("handler") }, internal, false},
		"a plain error":               {always(outcome{err: errors.New("plain")}), 2, false},
		"a cancelled context":         {always(outcome{err: context.Canceled}), 1, false},
		"a passed deadline":           {always(outcome{err: context.DeadlineExceeded}), deadlineExceeded, false},
		"an error that panics":        {always(outcome{err: (*nilError)(nil)}), internal, false},
		"an error without a code":     {always(outcome{err: connect.NewError(0, errors.New("no code"))}), 0, false},
		"a message that is not UTF-8": {always(outcome{text: "\xff"}), internal, true},
	} {
		for preset, runs := range map[reprise.Preset]int32{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
			s := e.serve(setup{Config: protocol.Config{Preset: preset}, handler: c.handler})
			with := keyed("k")
			if c.text {
				with.procedure = text
			}
			first, again := e.call(s, with), e.call(s, with)
			if first.code == 0 || again.code == 0 || c.code != 0 && first.code != c.code {
				e.Errorf("%s, %v: the first call got %+v, the retry %+v", name, preset, first, again)
			}
			if c.text && preset == reprise.AtMostOnce && reasonOf(again) != "RESULT_UNAVAILABLE" {
				e.Errorf("%s: the retry got %+v", name, again)
			}
			e.wantRuns(s, runs)
		}
	}
}
