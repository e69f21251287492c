package edges_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	repriseclient "github.com/reprise-go/reprise/client"
)

// serveRaw serves connections with a function, until the test ends.
func serveRaw(t *testing.T, serve func(n int, c net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				serve(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return "http://" + listener.Addr().String()
}

// retrying returns a client that retries fast.
func retrying(t *testing.T, base *http.Transport, c repriseclient.Config) *http.Client {
	t.Helper()
	t.Cleanup(base.CloseIdleConnections)
	c.Delay, c.MaxDelay = time.Millisecond, 20*time.Millisecond
	transport, err := repriseclient.NewTransport(base, c)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// If a server sends anything but a response, the call is retried with its key and body,
// or ends with an error, within its bounds.
func TestGarbageIsRetried(t *testing.T) {
	t.Parallel()
	for name, garbage := range map[string]string{
		"nothing":                     "",
		"no HTTP":                     "SSH-2.0-OpenSSH_9.2\r\n",
		"half a status line":          "HTTP/1.1 20",
		"half a header":               "HTTP/1.1 201 Created\r\nContent-Len",
		"a bad length":                "HTTP/1.1 201 Created\r\nContent-Length: many\r\n\r\nhello",
		"two lengths":                 "HTTP/1.1 201 Created\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhello",
		"less than its length":        "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nhello",
		"a bad chunk":                 "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
		"chunks without an end":       "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"a broken gzip":               "HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
		"a status that is none":       "HTTP/1.1 999999 What\r\n\r\n",
		"binary":                      "\x00\xff\x16\x03\x01\r\n\r\n",
		"a header without an end":     "HTTP/1.1 201 Created\r\nX: " + strings.Repeat("x", 1<<16),
		"only informational answers":  "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
		"a 503 that breaks off":       "HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nhello",
		"a problem that breaks off":   "HTTP/1.1 422 No\r\nContent-Type: application/problem+json\r\nContent-Length: 99\r\n\r\n{\"code\":\"key-",
		"a Retry-After of nonsense":   "HTTP/1.1 503 Busy\r\nRetry-After: tomorrow\r\nContent-Length: 0\r\n\r\n",
		"a Retry-After below nothing": "HTTP/1.1 503 Busy\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var keys []string
			url := serveRaw(t, func(_ int, c net.Conn) {
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				body, err := io.ReadAll(req.Body)
				if err != nil || string(body) != "an order" {
					return
				}
				mu.Lock()
				keys = append(keys, req.Header.Get("Idempotency-Key"))
				n := len(keys)
				mu.Unlock()
				if n < 4 {
					_, _ = io.WriteString(c, garbage)
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\nConnection: close\r\n\r\norder")
			})
			got, err := post(t, retrying(t, &http.Transport{}, repriseclient.Config{}), url, "an order")
			if err != nil || got.status != http.StatusCreated || string(got.body) != "order" {
				t.Fatalf("ended with %d %q, %v", got.status, got.body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(keys) != 4 || keys[0] == "" || slices.ContainsFunc(keys, func(k string) bool { return k != keys[0] }) {
				t.Errorf("the attempts had the keys %q, want one, four times", keys)
			}
		})
	}
}

// An HTTP/2 server may refuse a stream, or go away, before it reads a request; and it may
// end one afterwards. All have the same key and body.
func TestHTTP2StreamsThatEnd(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(f *http2.Framer, stream uint32) error{
		"REFUSED_STREAM": func(f *http2.Framer, s uint32) error { return f.WriteRSTStream(s, http2.ErrCodeRefusedStream) },
		"INTERNAL_ERROR": func(f *http2.Framer, s uint32) error { return f.WriteRSTStream(s, http2.ErrCodeInternal) },
		"CANCEL":         func(f *http2.Framer, s uint32) error { return f.WriteRSTStream(s, http2.ErrCodeCancel) },
		"GOAWAY before":  func(f *http2.Framer, s uint32) error { return goAway(f, s-1) },
		"GOAWAY after":   goAway,
		"the end":        func(*http2.Framer, uint32) error { return io.EOF },
		"a frame too long": func(f *http2.Framer, s uint32) error {
			return f.WriteRawFrame(http2.FrameData, 0, s, make([]byte, 1<<17))
		},
		"DATA, no HEADERS": func(f *http2.Framer, s uint32) error { return f.WriteData(s, true, []byte("order")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			url := serveRaw(t, func(_ int, c net.Conn) {
				serveHTTP2(c, func(f *http2.Framer, stream uint32, key, body string) error {
					mu.Lock()
					seen = append(seen, key+" "+body)
					n := len(seen)
					mu.Unlock()
					if n < 3 {
						return harm(f, stream)
					}
					return respond(f, stream)
				})
			})
			protocols := new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			got, err := post(t, retrying(t, &http.Transport{Protocols: protocols}, repriseclient.Config{}), url, "an order")
			if err != nil || got.status != http.StatusCreated || string(got.body) != "order" {
				t.Fatalf("ended with %d %q, %v", got.status, got.body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] || !strings.HasSuffix(seen[0], `" an order`) {
				t.Errorf("the server got %q, want the same request three times", seen)
			}
		})
	}
}

func goAway(f *http2.Framer, last uint32) error {
	if err := f.WriteGoAway(last, http2.ErrCodeNo, nil); err != nil {
		return err
	}
	return io.EOF
}

// serveHTTP2 reads requests from a connection, and answers each with a function. An error
// of it ends the connection.
func serveHTTP2(c net.Conn, answer func(f *http2.Framer, stream uint32, key, body string) error) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if f.WriteSettings() != nil {
		return
	}
	keys, bodies := make(map[uint32]string), make(map[uint32]string)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			for _, field := range frame.RegularFields() {
				if field.Name == "idempotency-key" {
					keys[frame.StreamID] = field.Value
				}
			}
		case *http2.DataFrame:
			bodies[frame.StreamID] += string(frame.Data())
			if frame.StreamEnded() {
				err = answer(f, frame.StreamID, keys[frame.StreamID], bodies[frame.StreamID])
			}
		}
		if err != nil {
			return
		}
	}
}

// respond answers 201 with a body.
func respond(f *http2.Framer, stream uint32) error {
	var block strings.Builder
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "201"}); err != nil {
		return err
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(block.String()), EndHeaders: true}); err != nil {
		return err
	}
	return f.WriteData(stream, true, []byte("order"))
}
