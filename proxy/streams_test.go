package proxy_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// goAway is an HTTP/2 service that reads the header of the first request on each
// connection, and then says that it has processed none and closes the connection, as one
// does that is being replaced. It counts requests.
func goAway(t *testing.T, requests *atomic.Int64) net.Listener {
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
						break
					}
				}
				requests.Add(1)
				_, _ = conn.Write([]byte{0, 0, 8, 7, 0, 0, 0, 0, 0 /* last stream */, 0, 0, 0, 0 /* no error */, 0, 0, 0, 0})
			}()
		}
	}()
	return l
}

// A request is sent once, although GOAWAY lets a transport repeat it: the proxy cannot
// know that the service, which may run behind another proxy, has told the truth.
func TestGoAwayRepeatsNoRequestWithAKey(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	l := goAway(t, &requests)
	b := setup(t, strings.ReplaceAll(plain, "http://UPSTREAM", "h2c://"+l.Addr().String()))
	if first := b.post("/orders", "k1"); first.status != http.StatusBadGateway {
		t.Errorf("the first client got %d %s, want 502", first.status, first.body)
	}
	if again := b.post("/orders", "k1"); again.status != http.StatusConflict {
		t.Errorf("the retry got %d %s, want 409", again.status, again.body)
	}
	if got := requests.Load(); got != 1 {
		t.Errorf("the service got %d requests, want 1", got)
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

// A client that reads slowly gets the whole response, and so does its retry.
func TestSlowReaderGetsTheWholeResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, plain+"[default]\nmax_response_body = 16777216\n")
	const size = 16 << 20 // more than the buffers of sockets, so that writes wait for the reader
	b.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
	for _, replayed := range []string{"", "true"} {
		conn := b.dial("POST /orders HTTP/1.1\r\n" + keyed + "Content-Length: 0\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReaderSize(slow{conn}, 1<<10), nil)
		must(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if n != size || err != nil || resp.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %d bytes of %d, %v, replayed %q", n, size, err, resp.Header.Get("Idempotent-Replayed"))
		}
	}
	b.wantRuns(1)
}

// slow reads a little at a time.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), 1<<10)]) }
