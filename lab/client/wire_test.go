package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	repriseclient "github.com/reprise-go/reprise/client"
)

// listen serves connections with a function, until the test ends.
func listen(t *testing.T, serve func(n int, c net.Conn)) string {
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
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
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

// client returns one that retries fast.
func client(t *testing.T, base *http.Transport, c repriseclient.Config) *http.Client {
	t.Helper()
	t.Cleanup(base.CloseIdleConnections)
	c.Delay, c.MaxDelay = time.Millisecond, 20*time.Millisecond
	transport, err := repriseclient.NewTransport(base, c)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// end makes a call.
func call(t *testing.T, c *http.Client, url, body string) (end, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return end{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return end{resp.StatusCode, got, repriseclient.Attempts(resp), repriseclient.Replayed(resp)}, err
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
			url := listen(t, func(_ int, c net.Conn) {
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
			got, err := call(t, client(t, &http.Transport{}, repriseclient.Config{}), url, "an order")
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

// A server that takes requests and stays silent.
func TestSilenceEndsInAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	url := listen(t, func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := client(t, &http.Transport{}, repriseclient.Config{AttemptTimeout: 30 * time.Millisecond, MaxAttempts: 3})
	_, err := call(t, c, url, "an order")
	var unknown *repriseclient.UnknownOutcomeError
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &unknown) || unknown.Attempts != 3 || !errors.Is(err, repriseclient.ErrAttemptTimeout) {
		t.Errorf("got %v", err)
	}
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v is no timeout", err)
	}
}

// No server listens: the operation did not run, and the error says so.
func TestARefusedConnectionIsKnown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := call(t, client(t, &http.Transport{}, repriseclient.Config{MaxAttempts: 3}), server.URL, "an order")
	var not *repriseclient.NotSentError
	if !errors.As(err, &not) || not.Attempts != 3 {
		t.Errorf("got %v", err)
	}
}

func TestAWrongCertificateIsNotRetried(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = silent
	server.StartTLS()
	defer server.Close()
	_, err := call(t, client(t, &http.Transport{}, repriseclient.Config{}), server.URL, "an order")
	var not *repriseclient.NotSentError
	if !errors.As(err, &not) || not.Attempts != 1 {
		t.Errorf("got %v", err)
	}
}

// net/http silently repeats a request that has an Idempotency-Key, when a connection that
// it kept turns out to be dead. The key is the same, and this is one attempt.
func TestNetHTTPRepeatsWithTheSameKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys []string
	url := listen(t, func(n int, c net.Conn) {
		reader := bufio.NewReader(c)
		for requests := 1; ; requests++ {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			mu.Lock()
			keys = append(keys, req.Header.Get("Idempotency-Key")+" "+string(body))
			mu.Unlock()
			if n == 1 && requests == 2 {
				return // the connection dies with the second request
			}
			_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\norder")
		}
	})
	c := client(t, &http.Transport{}, repriseclient.Config{})
	for _, body := range []string{"first", "second"} {
		got, err := call(t, c, url, body)
		if err != nil || got.status != http.StatusCreated || got.attempts != 1 {
			t.Fatalf("%s: %+v, %v", body, got, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != 3 || keys[1] != keys[2] || keys[0] == keys[1] || !strings.HasSuffix(keys[2], " second") {
		t.Errorf("the server got %q, want the second request twice", keys)
	}
}

func TestExpectContinueIsRetried(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests++
		n := requests
		mu.Unlock()
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // before it reads the body: no 100 Continue
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.NopCloser(strings.NewReader("an order")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Expect", "100-continue")
	resp, err := client(t, &http.Transport{ExpectContinueTimeout: 10 * time.Second}, repriseclient.Config{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "an order" || repriseclient.Attempts(resp) != 2 {
		t.Errorf("got %q after %d attempts, %v", body, repriseclient.Attempts(resp), err)
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
			url := listen(t, func(_ int, c net.Conn) {
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
			got, err := call(t, client(t, &http.Transport{Protocols: protocols}, repriseclient.Config{}), url, "an order")
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

// With a Timeout of the http.Client, and without one, a call does not outlive its time.
func TestDeadlinesOfTheCaller(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	c := client(t, &http.Transport{}, repriseclient.Config{})
	c.Timeout = 500 * time.Millisecond
	if got, err := call(t, c, server.URL, "an order"); err != nil || got.status != http.StatusServiceUnavailable || got.attempts != 1 {
		t.Errorf("with a timeout: %+v, %v, want the answer at once", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	c.Timeout = 0
	resp, err := c.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
