package protocol_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

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
