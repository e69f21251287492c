package proxy_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// leaving is an HTTP/2 service that reads the header of each request, counts it, and
// answers with a frame that says that it was not processed.
func leaving(t *testing.T, requests *atomic.Int64, frame func(stream []byte) []byte) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				_, _ = in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
				_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
				for {
					var head [9]byte
					if _, err := io.ReadFull(in, head[:]); err != nil {
						return
					}
					_, _ = in.Discard(int(binary.BigEndian.Uint32(append([]byte{0}, head[:3]...))))
					if head[3] == 1 { // HEADERS
						if requests.Add(1) > 3 {
							return // which ends a test that fails
						}
						_, _ = conn.Write(frame(head[5:]))
					}
				}
			}()
		}
	}()
	return l
}

// A request is sent once, although GOAWAY lets a transport repeat it, and net/http
// repeats one without a body after a reset: the proxy cannot know that the service, which
// may run behind another proxy, has told the truth.
func TestFramesOfAServiceThatLeavesRepeatNoRequestWithAKey(t *testing.T) {
	t.Parallel()
	reset := func(code byte) func([]byte) []byte {
		return func(stream []byte) []byte { return slices.Concat([]byte{0, 0, 4, 3, 0}, stream, []byte{0, 0, 0, code}) }
	}
	for name, frame := range map[string]func(stream []byte) []byte{
		"GOAWAY": func([]byte) []byte {
			return []byte{0, 0, 8, 7, 0, 0, 0, 0, 0 /* last stream */, 0, 0, 0, 0 /* no error */, 0, 0, 0, 0}
		},
		"PROTOCOL_ERROR": reset(1), "INTERNAL_ERROR": reset(2), "REFUSED_STREAM": reset(7),
	} {
		var requests atomic.Int64
		l := leaving(t, &requests, frame)
		b := setup(t, strings.ReplaceAll(plain, "http://UPSTREAM", "h2c://"+l.Addr().String()))
		empty := func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 }
		if first := b.post("/orders", "k1", empty); first.status != http.StatusBadGateway {
			t.Errorf("%s: the first client got %d %s, want 502", name, first.status, first.body)
		}
		if again := b.post("/orders", "k1", empty); again.status != http.StatusConflict {
			t.Errorf("%s: the retry got %d %s, want 409", name, again.status, again.body)
		}
		if got := requests.Load(); got != 1 {
			t.Errorf("%s: the service got %d requests, want 1", name, got)
		}
	}
}

// A call of gRPC ends with trailers, of which a replay has all or none.
func TestTrailersOfGRPCPass(t *testing.T) {
	t.Parallel()
	b := setup(t, strings.ReplaceAll(plain, "http:", "h2c:"))
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = w.Write([]byte{0, 0, 0, 0, 0})
		_ = http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "fine")
	})
	b.speakHTTP2()
	for _, key := range []string{"", "k1", "k1"} {
		got := b.post("/pay.Payments/Pay", key, header("Content-Type", "application/grpc"), header("Te", "trailers"))
		if got.status != http.StatusOK || got.trailer.Get("Grpc-Status") != "0" || got.trailer.Get("Grpc-Message") != "fine" || len(got.body) != 5 {
			t.Errorf("the key %q: got %d %v %q %v %v", key, got.status, got.header, got.body, got.trailer, got.err)
		}
	}
	b.wantRuns(2)
}
