package protocol_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// source is a body that a handler gives to its framework as a reader. It counts the bytes
// read from it, and fails the test if it is read when it may not be.
type source struct {
	t    *testing.T
	left int
	read int
	end  error // after the last byte
}

func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		s.t.Error("read without room for a byte")
		return 0, io.ErrShortBuffer
	}
	n := min(len(p), s.left, 5)
	for i := range n {
		p[i] = byte('a' + (s.read+i)%26)
	}
	s.read, s.left = s.read+n, s.left-n
	if n == 0 {
		return 0, s.end
	}
	return n, nil
}

// letters returns the first n bytes of a source.
func letters(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return b
}

var errSource = errors.New("the source broke")

// A body that is held back is read to its end, and no further than it is declared or can
// be kept. A body that is not whole was cut short (R33).
func TestR33BodiesFromReadersAreWholeOrCut(t *testing.T) {
	t.Parallel()
	const limit = 20
	for _, c := range []struct {
		name     string
		declared int64
		has      int
		end      error
		read     int // of the source
		oversize bool
		cut      bool
		err      error
	}{
		{"no length, no bytes", -1, 0, io.EOF, 0, false, false, nil},
		{"no length, as long as can be kept", -1, 20, io.EOF, 20, false, false, nil},
		{"no length, too long", -1, 100, io.EOF, 21, true, false, nil},
		{"no length, breaks off", -1, 10, errSource, 10, false, true, errSource},
		{"no length, a wrapped end", -1, 10, fmt.Errorf("wrapped: %w", io.EOF), 10, false, true, io.EOF},
		{"whole", 12, 12, io.EOF, 12, false, false, nil},
		{"whole, then broken", 12, 12, errSource, 12, false, false, errSource},
		{"nothing, as declared", 0, 0, io.EOF, 0, false, false, nil},
		{"something, where nothing is declared", 0, 100, io.EOF, 1, false, true, nil},
		{"a byte too short", 12, 11, io.EOF, 11, false, true, nil},
		{"a byte too long", 12, 13, io.EOF, 13, false, true, nil},
		{"much too long", 12, 100, io.EOF, 13, false, true, nil},
		{"declared as long as can be kept", 20, 20, io.EOF, 20, false, false, nil},
		{"longer than that", 20, 100, io.EOF, 21, true, true, nil},
		{"declared too long", 30, 30, io.EOF, 21, true, false, nil},
		{"declared too long, and shorter", 30, 15, io.EOF, 15, false, true, nil},
		{"declared too long, and breaks off", 30, 15, errSource, 15, false, true, errSource},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: limit}})
			x := b.admit("k", "").Exchange
			defer x.Close()
			capture, src := x.Capture(c.declared), &source{t: t, left: c.has, end: c.end}
			n, err := capture.ReadFrom(src)
			if int(n) != c.read || src.read != c.read || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("read %d, %v, and %d of the source; want %d, %v", n, err, src.read, c.read, c.err)
			}
			if c.err == nil || errors.Is(c.err, errSource) {
				err = c.end
			}
			got := capture.Captured(200, err)
			if got.Status != 200 || got.Oversize != c.oversize || got.Cut != c.cut {
				t.Errorf("captured %+v, want oversize %t, cut %t", got, c.oversize, c.cut)
			}
			if want := letters(c.read); !c.oversize && !bytes.Equal(got.Body, want) {
				t.Errorf("captured %q, want %q", got.Body, want)
			}
			if c.oversize && len(capture.Bytes()) > 0 || capture.Oversize() != c.oversize {
				t.Errorf("%d bytes of a body over the limit are in memory; oversize: %t", len(capture.Bytes()), capture.Oversize())
			}
			x.Finish(got)
		})
	}
}

// A body is held back if it is known to be short enough, or if its effects commit with
// it.
func TestBodiesThatAreHeldBack(t *testing.T) {
	t.Parallel()
	for _, atomic := range []bool{false, true} {
		var store store.Store = memstore.New()
		if atomic {
			store = atomically(store)
		}
		x := setupOver(t, store, protocol.Config{Limits: protocol.Limits{ResponseBody: 20}}).admit("k", "").Exchange
		for declared, want := range map[int64]bool{-7: false, -1: false, 0: true, 20: true, 21: false} {
			if got := x.Capture(declared).HoldBack(); got != (want || atomic) {
				t.Errorf("atomic %t, declared %d: held back %t", atomic, declared, got)
			}
		}
		finish(x, 200)
	}
}

// A body that is sent as it is read is kept up to the limit, which counts the parts
// together.
func TestBodiesThatAreSentAsTheyAreReadAreKept(t *testing.T) {
	t.Parallel()
	for size, over := range map[int]bool{0: false, 19: false, 20: false, 21: true, 100: true} {
		b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 20}})
		x := b.admit("k", "body").Exchange
		capture := x.Capture(-1)
		for rest := letters(size); len(rest) > 0; {
			n := min(7, len(rest))
			if written, err := capture.Write(rest[:n]); written != n || err != nil {
				t.Errorf("wrote %d, %v, want %d", written, err, n)
			}
			rest = rest[n:]
		}
		got := capture.Captured(200, io.EOF)
		if got.Oversize != over || got.Cut || capture.Oversize() != over || !over && !bytes.Equal(got.Body, letters(size)) || over && len(got.Body) > 0 {
			t.Errorf("%d bytes: captured %+v", size, got)
		}
		got.Sent = true
		x.Finish(got)
		x.Close()
		if w := b.replay("k"); over == (w.Header().Get("Idempotency-Body") == "") || !over && w.Body.Len() != size {
			t.Errorf("%d bytes: replayed %d bytes, %v", size, w.Body.Len(), w.Header())
		}
	}
}

// A body that is offloaded is read on, as far as it is declared, and comes back whole.
func TestR35BodiesFromReadersAreOffloaded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		declared int64
		has      int
		end      error
		read     int
		kept     bool
	}{
		{"no length", -1, 5000, io.EOF, 5000, true},
		{"whole", 5000, 5000, io.EOF, 5000, true},
		{"breaks off", -1, 5000, errSource, 5000, false},
		{"too short", 6000, 5000, io.EOF, 5000, false},
		{"too long", 4999, 50_000, io.EOF, 5001, false}, // the source gives 5 bytes at a time
		{"too long, by what follows", 5001, 50_000, io.EOF, 5006, false},
		{"too long for a blob", -1, 2 << 20, io.EOF, 1<<20 + 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := offload(t, nil)
			x := o.admit("k", "body").Exchange
			defer x.Close()
			capture, src := x.Capture(c.declared), &source{t: t, left: c.has, end: c.end}
			n, err := capture.ReadFrom(src)
			if int(n) != c.read || src.read != c.read {
				t.Errorf("read %d, and %d of the source, want %d", n, src.read, c.read)
			}
			got := capture.Captured(200, err)
			reply := x.Finish(got)
			if !got.Oversize || len(capture.Bytes()) > 0 {
				t.Errorf("captured %+v with %d bytes in memory", got, len(capture.Bytes()))
			}
			if reply.Stream != nil {
				sent, err := io.ReadAll(reply.Stream)
				if !bytes.Equal(sent, letters(c.read)) || err != nil || reply.Length != int64(c.read) {
					t.Errorf("%d bytes are sent, and %d declared, %v; want %d", len(sent), reply.Length, err, c.read)
				}
				_ = reply.Stream.Close()
			}
			if c.kept {
				if w := o.replay("k"); !bytes.Equal(w.Body.Bytes(), letters(c.has)) {
					t.Errorf("replayed %d bytes, want %d", w.Body.Len(), c.has)
				}
			} else if o.guard.Stats().Offloaded != 0 {
				t.Error("a body that was cut short is kept")
			}
		})
	}
}

// Decide sees the first 4 KiB of every whole body, whether it is in memory, was written
// in parts, was streamed, outgrew the limit, or came from a reader.
func TestR31DecideSeesTheStartOfTheBody(t *testing.T) {
	t.Parallel()
	const bound = 4 << 10
	inMemory := func(x *protocol.Exchange, body []byte) {
		x.Finish(protocol.Captured{Status: 200, Body: body})
		x.Close()
	}
	parts := func(size int, flushes bool) func(*protocol.Exchange, []byte) {
		return func(x *protocol.Exchange, body []byte) {
			var w protocol.Recorder
			w.Start(x, http.Header{}, discard{}, nil)
			defer w.Close()
			for part := range slices.Chunk(body, size) {
				_, _ = w.Write(part)
				if flushes {
					w.Flush()
				}
			}
			w.Finish()
		}
	}
	read := func(x *protocol.Exchange, body []byte) {
		c := x.Capture(int64(len(body)))
		var err error
		if c.HoldBack() {
			_, err = c.ReadFrom(bytes.NewReader(body))
		} else {
			_, err = io.Copy(c, bytes.NewReader(body))
		}
		x.Finish(c.Captured(200, err))
		x.Close()
	}
	for _, limit := range []int{1, 100, 5000, 1 << 20} {
		for _, offloads := range []bool{false, true} {
			var got []byte
			cfg := protocol.Config{
				Limits: protocol.Limits{ResponseBody: limit},
				Keep: protocol.Keeping{Decide: func(e protocol.Ending) protocol.Decision {
					got = append(got[:0], e.Head...)
					return protocol.ReleaseKey
				}},
			}
			if offloads {
				cfg.Offload = protocol.Offloading{Blobs: new(blobs), Dir: t.TempDir(), MaxBody: 2 << 20}
			}
			b := setup(t, cfg)
			for _, size := range []int{0, 1, 99, bound - 1, bound, bound + 1, 20_000} {
				body := letters(size)
				for name, send := range map[string]func(*protocol.Exchange, []byte){
					"in memory": inMemory, "at once": parts(1<<20, false), "in parts": parts(700, false), "streamed": parts(700, true), "read": read,
				} {
					x := b.admit("k", "body").Exchange // released each time
					if x == nil {
						t.Fatal("the response before was kept")
					}
					send(x, body)
					if want := body[:min(size, bound)]; !bytes.Equal(got, want) {
						t.Errorf("%s, %d bytes, limit %d, offload %v: saw %d bytes, want %d", name, size, limit, offloads, len(got), len(want))
					}
				}
			}
		}
	}
}
