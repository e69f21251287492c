package repriseclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBodiesAreSentAgain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	for name, test := range map[string]struct {
		body   io.Reader
		length int64 // to declare
		config Config
		want   string
		sent   int64 // ContentLength of every attempt
	}{
		"none":                    {},
		"http.NoBody":             {body: http.NoBody},
		"GetBody":                 {body: strings.NewReader("hello"), want: "hello", sent: 5},
		"GetBody, over the bound": {body: strings.NewReader(long + "!"), want: long + "!", sent: 1<<20 + 1},
		"buffered":                {body: &closing{Reader: strings.NewReader("hello")}, want: "hello", sent: 5},
		"buffered, empty":         {body: &closing{Reader: strings.NewReader("")}},
		"buffered, declared":      {body: &closing{Reader: strings.NewReader("hello")}, length: 5, want: "hello", sent: 5},
		"buffered, unknown":       {body: &closing{Reader: strings.NewReader("hello")}, length: -1, want: "hello", sent: 5},
		"buffered to the bound":   {body: &closing{Reader: strings.NewReader(long)}, want: long, sent: 1 << 20},
		"a larger bound":          {body: &closing{Reader: strings.NewReader(long + "!")}, config: Config{MaxRequestBuffer: 2 << 20}, want: long + "!", sent: 1<<20 + 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: func(n int, req *http.Request) (*http.Response, error) {
				// net/http repeats a request itself when a reused connection breaks.
				again, err := req.GetBody()
				must(t, err)
				if again != nil {
					if got, err := io.ReadAll(again); err != nil || string(got) != test.want {
						t.Errorf("attempt %d would be repeated with %d bytes, %v, want %d", n, len(got), err, len(test.want))
					}
				}
				return failTimes(2)(n, req)
			}}
			req := post(t.Context(), t, test.body)
			if test.length != 0 {
				req.ContentLength = test.length
			}
			body, declared := req.Body, req.ContentLength
			do(t, newTransport(t, base, test.config), req)
			if base.attempts() != 3 {
				t.Fatalf("%d attempts, want 3", base.attempts())
			}
			for i, sent := range base.sent {
				if sent.body != test.want || sent.length != test.sent {
					t.Errorf("attempt %d sent %d bytes as %d, want %d as %d", i+1, len(sent.body), sent.length, len(test.want), test.sent)
				}
			}
			if c, ok := test.body.(*closing); ok && c.times() == 0 {
				t.Error("the body was not closed")
			}
			if req.Body != body || req.ContentLength != declared {
				t.Error("the caller's request was changed")
			}
		})
	}
}

// A body that cannot be sent again ends the call after its first attempt, and one that
// cannot be read, or has another length than was declared, before it.
func TestBodiesThatEndTheCall(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for name, test := range map[string]struct {
		ended   bool // the context
		reader  io.Reader
		length  int64 // to declare
		limit   int64
		getBody func() (io.ReadCloser, error)
		sent    bool // once
		want    error
	}{
		"of unknown length":     {reader: strings.NewReader("hello"), limit: 4, sent: true, want: ErrNotReplayable},
		"over the bound":        {reader: strings.NewReader("hello"), limit: 4, length: 5, sent: true, want: ErrNotReplayable},
		"the smallest buffer":   {reader: strings.NewReader("hello"), limit: 1, sent: true, want: ErrNotReplayable},
		"never buffered":        {reader: strings.NewReader("hello"), limit: -1, sent: true, want: ErrNotReplayable},
		"the least bound":       {reader: strings.NewReader("hello"), limit: math.MinInt64, sent: true, want: ErrNotReplayable},
		"a GetBody that fails":  {reader: strings.NewReader("hello"), getBody: func() (io.ReadCloser, error) { return nil, broken }, sent: true, want: broken},
		"a read that fails":     {reader: failing{broken}, want: broken},
		"less than is declared": {reader: strings.NewReader("hello"), length: 6},
		"more than is declared": {reader: strings.NewReader("hello"), length: 4},
		"a context that ended":  {ended: true, reader: strings.NewReader("hello"), getBody: func() (io.ReadCloser, error) { return http.NoBody, nil }, want: context.Canceled},
	} {
		inBubble(t, name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if test.ended {
				end()
			}
			base := always(failure(errNetwork))
			body := &closing{Reader: test.reader}
			req := post(ctx, t, body)
			req.ContentLength, req.GetBody = test.length, test.getBody
			err := fails(t, newTransport(t, base, Config{MaxRequestBuffer: test.limit}), req)
			var unknown *UnknownOutcomeError
			var not *NotSentError
			if errors.As(err, &unknown) != test.sent || errors.As(err, &not) == test.sent || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %T, %v", err, err)
			}
			if base.attempts() > 1 || (base.attempts() == 1) != test.sent {
				t.Errorf("%d attempts", base.attempts())
			}
			if test.sent && test.getBody == nil && (!errors.Is(err, errNetwork) || base.sent[0].body != "hello" || base.sent[0].length != test.length || base.sent[0].header.Get("Idempotency-Key") == "") {
				t.Errorf("sent %+v, %v", base.sent[0], err)
			}
			if body.times() == 0 {
				t.Error("the body was not closed")
			}
		})
	}
}

func TestLongBodyGetsTheLastResponse(t *testing.T) {
	t.Parallel()
	base := always(status(503))
	req := post(t.Context(), t, &closing{Reader: strings.NewReader("hello")})
	if resp, _ := do(t, newTransport(t, base, Config{MaxRequestBuffer: -1}), req); resp.StatusCode != http.StatusServiceUnavailable || !GaveUp(resp) {
		t.Errorf("got %d, GaveUp %v", resp.StatusCode, GaveUp(resp))
	}
}

// A body without a writer does not hold a call whose context ended.
func TestABodyThatBlocksEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reader, writer := io.Pipe()
		defer writer.Close()
		base := &fake{answer: failTimes(0)}
		err := fails(t, newTransport(t, base, Config{}), post(ctx, t, reader))
		var not *NotSentError
		if !errors.As(err, &not) || !errors.Is(err, context.DeadlineExceeded) || !not.Timeout() {
			t.Errorf("got %v", err)
		}
	})
}

// Trailers are known once the body is read, and every attempt sends them.
func TestTrailersAreSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &fake{answer: failTimes(2)}
		trailer := http.Header{"Checksum": nil}
		req := post(t.Context(), t, io.NopCloser(io.MultiReader(strings.NewReader("hello"), atEOF(func() { trailer.Set("Checksum", "5d41") }))))
		req.Trailer = trailer
		do(t, newTransport(t, base, Config{}), req)
		for i, sent := range base.sent {
			if sent.trailer.Get("Checksum") != "5d41" || sent.body != "hello" || sent.length != -1 {
				t.Errorf("attempt %d sent %+v", i+1, sent)
			}
		}
	})
}

type atEOF func()

func (f atEOF) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func TestBrokenResponseIsRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		fields []string
		head   int
		retry  bool
	}{
		"in the buffer":        {head: 100, retry: true},
		"at its end":           {head: 1<<20 - 1, retry: true},
		"behind the buffer":    {head: 1<<20 + 1},
		"a small buffer":       {config: Config{MaxResponseBuffer: 10}, head: 100},
		"no buffer":            {config: Config{MaxResponseBuffer: -1}, head: 100},
		"a stream of events":   {fields: []string{"Content-Type", "text/event-stream; charset=utf-8"}, head: 100},
		"other types are read": {fields: []string{"Content-Type", "application/json"}, head: 100, retry: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			head := bytes.Repeat([]byte("x"), test.head)
			cut := &closing{Reader: io.MultiReader(bytes.NewReader(head), failing{io.ErrUnexpectedEOF})}
			base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 2 {
					return response(201, "created", "Idempotent-Replayed", "true"), nil
				}
				resp := response(201, "", test.fields...)
				resp.Body = cut
				return resp, nil
			}}
			resp, err := newTransport(t, base, test.config).RoundTrip(post(t.Context(), t, nil))
			must(t, err)
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			switch {
			case test.retry && (err != nil || string(got) != "created" || base.attempts() != 2 || !Replayed(resp)):
				t.Errorf("%d attempts ended with %d bytes, %v", base.attempts(), len(got), err)
			case !test.retry && (!errors.Is(err, io.ErrUnexpectedEOF) || len(got) != test.head || base.attempts() != 1):
				t.Errorf("%d attempts ended with %d bytes, %v", base.attempts(), len(got), err)
			}
			if cut.times() == 0 {
				t.Error("the body that broke off was not closed")
			}
		})
	}
}

// A discarded response is read to its end, so that the connection can be reused, but not
// for ever.
func TestRetriedResponsesAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bodies []*closing
		base := &fake{answer: func(n int, req *http.Request) (*http.Response, error) {
			if n == 4 {
				return response(201, "created"), nil
			}
			body := &closing{Reader: io.MultiReader(strings.NewReader("busy"), untilDone{req.Context()})} // stalls
			bodies = append(bodies, body)
			resp := response(503, "")
			resp.Body = body
			return resp, nil
		}}
		began := time.Now()
		do(t, newTransport(t, base, Config{MaxResponseBuffer: -1}), post(t.Context(), t, nil))
		for _, body := range bodies {
			if body.times() == 0 {
				t.Error("a body was not closed")
			}
		}
		if took := time.Since(began); took > 3*drainTimeout+1400*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

// untilDone is a reader that blocks until its context ends.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

func TestAnAttemptThatTakesTooLongIsRetried(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"before the header": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"in the body": func(req *http.Request) (*http.Response, error) {
			resp := response(201, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("crea"), untilDone{req.Context()}))
			return resp, nil
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: func(n int, req *http.Request) (*http.Response, error) {
				if n < 3 {
					return answer(req)
				}
				return response(201, "created"), nil
			}}
			c := Config{AttemptTimeout: 5 * time.Second}
			began := time.Now()
			resp, body := do(t, newTransport(t, base, c), post(t.Context(), t, nil))
			if took := time.Since(began); body != "created" || Attempts(resp) != 3 || took < 10*time.Second || took > 11*time.Second {
				t.Errorf("%q after %s and %d attempts", body, took, Attempts(resp))
			}
			c.MaxAttempts = 2
			base.sent = nil
			if err := fails(t, newTransport(t, base, c), post(t.Context(), t, nil)); !errors.Is(err, ErrAttemptTimeout) {
				t.Errorf("got %v, want ErrAttemptTimeout", err)
			}
		})
	}
}

// The timeout of an attempt ends where a stream begins.
func TestAStreamMayTakeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &fake{answer: func(_ int, req *http.Request) (*http.Response, error) {
			resp := response(200, "", "Content-Type", "text/event-stream")
			resp.Body = io.NopCloser(io.MultiReader(pause{req.Context(), time.Minute}, strings.NewReader("data: 1\n\n")))
			return resp, nil
		}}
		_, body := do(t, newTransport(t, base, Config{AttemptTimeout: time.Second}), post(t.Context(), t, nil))
		if body != "data: 1\n\n" {
			t.Errorf("got %q", body)
		}
	})
}

// pause is a reader that returns no bytes after a while.
type pause struct {
	ctx  context.Context
	time time.Duration
}

func (p pause) Read([]byte) (int, error) {
	select {
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	case <-time.After(p.time):
		return 0, io.EOF
	}
}

// endless is a body that never ends, and counts the bytes read from it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// A service cannot exhaust the memory of a caller, even with a small response that
// unpacks to a large one: neither by a final response nor by one that is retried, nor by
// a problem.
func TestEndlessResponsesAreNotBuffered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		media    string
		attempts int
		most     int64 // of each attempt
	}{
		"an answer":                {200, "application/json", 1, 1<<20 + 1},
		"a problem":                {422, "application/problem+json", 1, 1<<20 + 1},
		"a problem that may pass":  {503, "application/problem+json", 3, 1<<20 + 1 + maxDrain},
		"a gateway's page":         {502, "text/html", 3, 1<<20 + 1 + maxDrain},
		"an event stream":          {200, "text/event-stream", 1, 0},
		"an event stream that may": {503, "text/event-stream", 3, maxDrain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies []*endless
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				bodies = append(bodies, new(endless))
				return &http.Response{
					StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Body: bodies[len(bodies)-1],
					ContentLength: -1, Request: req,
				}, nil
			})
			transport := newTransport(t, base, Config{MaxAttempts: 3, Delay: time.Millisecond})
			resp, err := transport.RoundTrip(post(t.Context(), t, strings.NewReader("{}")))
			must(t, err)
			for i, body := range bodies {
				if n := body.read.Load(); n > c.most {
					t.Errorf("attempt %d: %d bytes were read, want %d at most", i+1, n, c.most)
				}
			}
			if _, ok := ProblemOf(resp); ok {
				t.Error("what has no end is a problem document")
			}
			if n, err := io.CopyN(io.Discard, resp.Body, 4<<20); n != 4<<20 {
				t.Errorf("%d bytes, %v", n, err)
			}
			_ = resp.Body.Close()
			if len(bodies) != c.attempts {
				t.Errorf("%d attempts, want %d", len(bodies), c.attempts)
			}
		})
	}
}
