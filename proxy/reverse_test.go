package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"
)

// gateway is a guard around a reverse proxy of a user's, on a real socket, in front of a
// bank.
type gateway struct {
	*bundle

	records *memstore.Store
	reverse *httputil.ReverseProxy // which a test may change before the first request
}

// newGateway starts both. The first request to the bank is handled as a test says, and
// all others get 201.
func newGateway(t *testing.T, preset reprise.Preset, first http.HandlerFunc) *gateway {
	t.Helper()
	records := memstore.New()
	g := &gateway{bundle: setupOver(t, records, reprise.Config{}, plain), records: records}
	g.handle(func(w http.ResponseWriter, r *http.Request) {
		if g.runs.Load() == 1 && first != nil {
			first(w, r)
			return
		}
		paid(w, r)
	})
	target := &url.URL{Scheme: "http", Host: g.upstream.Listener.Addr().String(), User: url.UserPassword("user", "secret")}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	g.reverse = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	guard, err := protocol.Over(g.handler.Engine(), protocol.Config{Preset: preset})
	must(t, err)
	g.url = start(t, reprisehttp.Middleware(guard, reprisehttp.Unscoped)(proxy.Forward(g.reverse))).URL
	return g
}

// execute reads the request, as each operation of a bank does.
func execute(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func paid(w http.ResponseWriter, r *http.Request) {
	execute(r)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "paid")
}

// pay sends a payment with a key. The status is 0 if its response broke off.
func (g *gateway) pay(change ...func(*http.Request)) *answer {
	g.t.Helper()
	got := g.post("/payments", "k", change...)
	if got.err != nil {
		return &answer{}
	}
	return got
}

// reason returns that of the only record, if its outcome is unknown.
func (g *gateway) reason() string {
	g.t.Helper()
	page, err := g.records.List(g.t.Context(), store.Query{States: store.States(store.StateUnknown), Limit: 2})
	if err != nil || len(page.Records) > 1 {
		g.t.Fatal(page, err)
	}
	if len(page.Records) == 0 {
		return ""
	}
	return page.Records[0].Reason
}

// isUnknown fails the test unless retries are refused and do not reach the bank, which
// got the request so many times.
func (g *gateway) isUnknown(requests int64, reason string) {
	g.t.Helper()
	for range 2 {
		if again := g.pay(); again.status != http.StatusConflict || !strings.Contains(string(again.body), "outcome-unknown") {
			g.t.Errorf("a retry got %d %q, want 409 outcome-unknown", again.status, again.body)
		}
	}
	if got := g.reason(); got != reason {
		g.t.Errorf("the reason is %q, want %q", got, reason)
	}
	g.wantRuns(requests)
}

func forEachPreset(t *testing.T, f func(t *testing.T, preset reprise.Preset)) {
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		t.Run(preset.String(), func(t *testing.T) {
			t.Parallel()
			f(t, preset)
		})
	}
}

const (
	reasonBroke   = "proxy: the connection broke before the upstream responded, or the response was invalid"
	reasonTimeout = "proxy: the upstream did not respond in time"
	reasonCut     = "proxy: the upstream responded 201, and the response could not be passed on"
	reasonChanged = "proxy: the upstream changed protocols"
)

var errModify = errors.New("the response is not one of http://user:secret@bank")

// A bank that may have executed a payment is never asked again, and no failure to pass
// its response on is replayed.
func TestForwardRefusesRetriesOfWhatMayHaveRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  http.HandlerFunc
		change func(*httputil.ReverseProxy)
		status int // of the first response; 0: it breaks off
		reason string
	}{
		"died before it read the body": {
			first:  func(w http.ResponseWriter, _ *http.Request) { hangUp(w, "") },
			status: http.StatusBadGateway, reason: reasonBroke,
		},
		"died after it executed": {
			first:  func(w http.ResponseWriter, r *http.Request) { execute(r); hangUp(w, "") },
			status: http.StatusBadGateway, reason: reasonBroke,
		},
		"answered what is no HTTP": {
			first:  func(w http.ResponseWriter, r *http.Request) { execute(r); hangUp(w, "secret\r\n\r\n") },
			status: http.StatusBadGateway, reason: reasonBroke,
		},
		"took too long": {
			first:  func(_ http.ResponseWriter, r *http.Request) { execute(r); <-r.Context().Done() },
			change: func(p *httputil.ReverseProxy) { transportOf(p).ResponseHeaderTimeout = 20 * time.Millisecond },
			status: http.StatusGatewayTimeout, reason: reasonTimeout,
		},
		"died after its header": {
			first: cut("Content-Length: 4\r\n\r\n"), reason: reasonCut,
		},
		"died in the body": {
			first: cut("Content-Length: 4\r\n\r\npa"), reason: reasonCut,
		},
		"died in a chunk": {
			first: cut("Transfer-Encoding: chunked\r\n\r\n2\r\npa\r\n"), reason: reasonCut,
		},
		"died in a stream": {
			first:  cut("Content-Length: 4\r\n\r\npa"),
			change: func(p *httputil.ReverseProxy) { p.FlushInterval = -1 }, reason: reasonCut,
		},
		"died in a body that is too long to be kept": {
			first: cut("Content-Length: 3000000\r\n\r\n" + strings.Repeat("paid", 500_000)), reason: reasonCut,
		},
		"got a response that was refused": {
			first:  paid,
			change: func(p *httputil.ReverseProxy) { p.ModifyResponse = func(*http.Response) error { return errModify } },
			status: http.StatusBadGateway, reason: reasonCut,
		},
		"got a response that was read and refused": {
			first: paid,
			change: func(p *httputil.ReverseProxy) {
				p.ModifyResponse = func(r *http.Response) error {
					_, err := io.Copy(io.Discard, r.Body)
					return errors.Join(err, errModify)
				}
			},
			status: http.StatusBadGateway, reason: reasonCut,
		},
		"got a response on which the proxy panicked": {
			first:  paid,
			change: func(p *httputil.ReverseProxy) { p.ModifyResponse = func(*http.Response) error { panic("unexpected") } },
			reason: reasonCut,
		},
		"changed protocols without being asked": {
			first: func(w http.ResponseWriter, r *http.Request) {
				execute(r)
				hangUp(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bank\r\n\r\n")
			},
			status: http.StatusBadGateway, reason: reasonChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
				g := newGateway(t, preset, test.first)
				if test.change != nil {
					test.change(g.reverse)
				}
				if first := g.pay(); first.status != test.status {
					t.Errorf("the first client got %d %.200q, want %d", first.status, first.body, test.status)
				}
				g.isUnknown(1, test.reason)
			})
		})
	}
}

// talk writes to a new connection and returns the bytes that come back until it ends.
func (g *gateway) talk(text string) string {
	g.t.Helper()
	conn := g.dial(text)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(conn)
	must(g.t, err)
	return string(got)
}

// hangUp sends the text as it is, and closes the connection.
func hangUp(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// cut executes, and breaks off the response after a part of it.
func cut(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		execute(r)
		hangUp(w, "HTTP/1.1 201 Created\r\n"+part)
	}
}

func transportOf(p *httputil.ReverseProxy) *http.Transport { return p.Transport.(*http.Transport) }

func TestForwardRunsAgainWhatWasNotSent(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*httputil.ProxyRequest){
		"nothing listens": func(r *httputil.ProxyRequest) {
			closed := httptest.NewServer(http.NotFoundHandler())
			closed.Close()
			r.Out.URL.Host = closed.Listener.Addr().String()
		},
		"no TLS":            func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "https" },
		"no host":           func(r *httputil.ProxyRequest) { r.Out.URL.Host = "" },
		"no valid protocol": func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
				g := newGateway(t, preset, nil)
				rewrite, first := g.reverse.Rewrite, new(sync.Once)
				g.reverse.Rewrite = func(r *httputil.ProxyRequest) {
					rewrite(r)
					first.Do(func() { fail(r) })
				}
				if first := g.pay(); first.status != http.StatusServiceUnavailable {
					t.Errorf("the first client got %d %q, want 503", first.status, first.body)
				}
				g.wantRuns(0)
				if second := g.pay(); second.status != http.StatusCreated || second.replayed() {
					t.Errorf("the retry got %d %q, replayed %v, want a run", second.status, second.body, second.replayed())
				}
				if third := g.pay(); third.status != http.StatusCreated || !third.replayed() {
					t.Errorf("the next one got %d %q, want the replay", third.status, third.body)
				}
				g.wantRuns(1)
			})
		})
	}
}

func TestWholeResponsesOfAnUpstreamAreThoseOfAHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  http.HandlerFunc
		change func(*httputil.ReverseProxy)
		fields []func(*http.Request)
		status int
		again  map[reprise.Preset]bool // the retry reaches the upstream
	}{
		"a success": {first: paid, status: http.StatusCreated},
		"a failure": {
			first:  func(w http.ResponseWriter, r *http.Request) { execute(r); w.WriteHeader(http.StatusServiceUnavailable) },
			status: http.StatusServiceUnavailable, again: map[reprise.Preset]bool{reprise.Recoverable: true},
		},
		"a refusal before the body": {
			first:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
			fields: []func(*http.Request){header("Expect", "100-continue")}, status: http.StatusRequestEntityTooLarge,
		},
		"a body that the proxy replaced": {
			first: func(w http.ResponseWriter, r *http.Request) { execute(r); w.WriteHeader(http.StatusCreated) },
			change: func(p *httputil.ReverseProxy) {
				p.ModifyResponse = func(r *http.Response) error {
					defer r.Body.Close()
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("done")), 4
					r.Header.Set("Content-Length", "4")
					return nil
				}
			},
			status: http.StatusCreated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
				var keys []string
				g := newGateway(t, preset, func(w http.ResponseWriter, r *http.Request) {
					keys = r.Header["Idempotency-Key"]
					test.first(w, r)
				})
				transportOf(g.reverse).ExpectContinueTimeout = time.Minute
				if test.change != nil {
					test.change(g.reverse)
				}
				first, again := g.pay(test.fields...), g.pay(test.fields...)
				if first.status != test.status || first.replayed() {
					t.Errorf("the first client got %d %q, want %d", first.status, first.body, test.status)
				}
				requests := int64(1)
				if test.again[preset] {
					requests = 2
				} else if again.status != first.status || !bytes.Equal(again.body, first.body) || !again.replayed() {
					t.Errorf("the retry got %d %q, want the replay of %d %q", again.status, again.body, first.status, first.body)
				}
				g.wantRuns(requests)
				if len(keys) != 1 || keys[0] != `"k"` {
					t.Errorf("the upstream got the keys %q, want the client's", keys)
				}
			})
		})
	}
}

// Only a length, a last chunk or the end of TLS tells a whole body from one that broke
// off.
func TestBodyThatTheEndOfTheConnectionEndsIsNotKept(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0", "1.1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
				g := newGateway(t, preset, func(w http.ResponseWriter, r *http.Request) {
					execute(r)
					hangUp(w, "HTTP/"+version+" 201 Created\r\nX-Receipt: 7\r\n\r\npai")
				})
				if first := g.pay(); first.status != http.StatusCreated || string(first.body) != "pai" {
					t.Errorf("the first client got %d %q", first.status, first.body)
				}
				again := g.pay()
				if again.status != http.StatusCreated || again.header.Get("X-Receipt") != "7" || !again.replayed() ||
					again.header.Get("Idempotency-Body") != "omitted" {
					t.Errorf("the retry got %d %v %q, want the replay without its body", again.status, again.header, again.body)
				}
				g.wantRuns(1)
			})
		})
	}
}

func TestAnUpstreamThatChangesProtocolsIsUnknown(t *testing.T) {
	t.Parallel()
	forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
		g := newGateway(t, preset, func(w http.ResponseWriter, r *http.Request) {
			execute(r)
			hangUp(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bank\r\n\r\npaid")
		})
		got := g.talk("POST /payments HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: \"k\"\r\nConnection: Upgrade\r\nUpgrade: bank\r\nContent-Length: 3\r\n\r\npay")
		if !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "paid") {
			t.Fatalf("the client got %q", got)
		}
		until(t, func() bool { return g.reason() != "" })
		g.isUnknown(1, reasonChanged)
	})
}

// net/http repeats a request with this field and without a body when a reused connection
// breaks.
func TestForwardAsksTheUpstreamOnceThoughAReusedConnectionBreaks(t *testing.T) {
	t.Parallel()
	g := newGateway(t, reprise.AtMostOnce, nil)
	g.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/payments" {
			paid(w, r)
			return
		}
		hangUp(w, "")
	})
	pay := func(path, key string) int {
		return g.post(path, key, func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 0 }).status
	}
	if got := pay("/payments", "first"); got != http.StatusCreated { // opens the connection
		t.Fatalf("got %d", got)
	}
	if got := pay("/break", "second"); got != http.StatusBadGateway {
		t.Errorf("got %d, want 502", got)
	}
	if got := pay("/break", "second"); got != http.StatusConflict {
		t.Errorf("the retry got %d, want 409", got)
	}
	g.wantRuns(2)
}

// R35: the upstream's response is whole and too long to be kept, whether or not the first
// client waits for all of it.
func TestR35AClientThatLeavesALongResponseIsNotUnknown(t *testing.T) {
	t.Parallel()
	forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
		g := newGateway(t, preset, func(w http.ResponseWriter, r *http.Request) {
			execute(r)
			w.Header().Set("Content-Length", strconv.Itoa(16<<20))
			w.WriteHeader(http.StatusCreated)
			_, _ = io.CopyN(w, strings.NewReader(strings.Repeat("x", 16<<20)), 16<<20)
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/payments", strings.NewReader("pay"))
		must(t, err)
		req.Header.Set("Idempotency-Key", `"k"`)
		resp, err := g.client.Do(req)
		must(t, err)
		_ = resp.Body.Close() // after its first bytes
		until(t, func() bool {
			again := g.pay()
			return again.status == http.StatusCreated && again.replayed() && again.header.Get("Idempotency-Body") == "omitted"
		})
		g.wantRuns(1)
	})
}

// The handler of the user has the last word, also where the response broke off or changed
// protocols before it.
func TestAnErrorHandlerDecidesAboutBrokenResponses(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]http.HandlerFunc{
		"died in the body": cut("Content-Length: 4\r\n\r\npa"),
		"changed protocols": func(w http.ResponseWriter, r *http.Request) {
			execute(r)
			hangUp(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bank\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, reprise.Recoverable, first)
			g.reverse.ModifyResponse = func(r *http.Response) error {
				if r.StatusCode == http.StatusSwitchingProtocols {
					return nil
				}
				_, err := io.Copy(io.Discard, r.Body)
				return err
			}
			g.reverse.ErrorHandler = func(w http.ResponseWriter, r *http.Request, _ error) {
				protocol.Keep(r.Context())
				w.WriteHeader(http.StatusTeapot)
			}
			for i, replayed := range []bool{false, true} {
				if got := g.pay(); got.status != http.StatusTeapot || got.replayed() != replayed {
					t.Errorf("request %d got %d, replayed %v, want the response of the handler", i, got.status, got.replayed())
				}
			}
		})
	}
}

func TestForwardBelievesNoTransport(t *testing.T) {
	t.Parallel()
	created := func(body io.Reader, length int64) *http.Response {
		return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(body), ContentLength: length}
	}
	for name, test := range map[string]struct {
		transport roundTripper
		refuses   bool // the response
		status    int  // 0: it breaks off
		reason    string
	}{
		"a response shows that a request was sent, whatever was traced": {func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host) // and no GotConn
			return created(http.NoBody, 0), nil
		}, true, http.StatusBadGateway, reasonCut},
		"a body ends by io.EOF itself, as for io.Copy, not by an error that wraps it": {func(*http.Request) (*http.Response, error) {
			return created(io.MultiReader(strings.NewReader("pa"), iotest.ErrReader(fmt.Errorf("connection lost: %w", io.EOF))), -1), nil
		}, false, 0, reasonCut},
		"one that does not trace may have sent a request, whatever its error": {func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errModify}
		}, false, http.StatusBadGateway, reasonBroke},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, reprise.Recoverable, nil)
			g.reverse.Transport = test.transport
			if test.refuses {
				g.reverse.ModifyResponse = func(*http.Response) error { return errModify }
			}
			if first := g.pay(); first.status != test.status {
				t.Errorf("the first client got %d, want %d", first.status, test.status)
			}
			g.isUnknown(0, test.reason)
		})
	}
}

// The helpers of repriseclient find the call in the request of its response.
func TestForwardKeepsTheRequestThatATransportPutIntoTheResponse(t *testing.T) {
	t.Parallel()
	g := newGateway(t, reprise.Recoverable, nil)
	base, own := g.reverse.Transport, &http.Request{}
	g.reverse.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err == nil {
			resp.Request = own
		}
		return resp, err
	})
	g.reverse.ModifyResponse = func(r *http.Response) error {
		if r.Request != own {
			t.Error("the response has another request")
		}
		return nil
	}
	if got := g.pay(); got.status != http.StatusCreated {
		t.Errorf("the client got %d", got.status)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A body that the upstream did not read is no reason to panic, to lose the connection, or
// to wait for a client that holds it back.
func TestForwardToAnUpstreamThatReadsNoBody(t *testing.T) {
	t.Parallel()
	g := newGateway(t, reprise.Recoverable, nil)
	g.client = &http.Client{} // whose connections stay
	t.Cleanup(g.client.CloseIdleConnections)
	g.upstream.Close()
	long := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("12 EUR", 1000))), 6000
	}
	for range 50 {
		if got := g.post("/payments", "", long); got.err != nil || got.status != http.StatusServiceUnavailable {
			t.Fatalf("got %+v, want 503", got)
		}
	}
	conn := g.dial("POST /payments HTTP/1.1\r\nHost: bank\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n")
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "503") {
		t.Errorf("got %q, %v, want 503", line, err)
	}
}

func TestForwardWithoutAKeyAnswersLikeAGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, reprise.Recoverable, func(w http.ResponseWriter, _ *http.Request) { hangUp(w, "") })
	if got := g.post("/payments", ""); got.status != http.StatusBadGateway || !strings.Contains(string(got.body), "may have executed") {
		t.Errorf("got %d %q", got.status, got.body)
	}
	g.wantRuns(1)
	defer func() {
		if recover() == nil {
			t.Error("there is a handler without a reverse proxy")
		}
	}()
	proxy.Forward(nil)
}

// The body of a run is in memory, so the upstream gets its length, also where the client
// sent it in chunks. Trailers follow chunks only.
func TestForwardDeclaresTheLengthOfABodyThatItHolds(t *testing.T) {
	t.Parallel()
	var got string
	g := newGateway(t, reprise.Recoverable, nil)
	g.handle(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got = fmt.Sprintf("%d %v %q %v %v", r.ContentLength, r.TransferEncoding, body, err, r.Trailer)
	})
	const chunks = "\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n"
	for request, want := range map[string]string{
		"Idempotency-Key: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n": `4 [] "body" <nil> map[]`,
		"Idempotency-Key: b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":              `0 [] "" <nil> map[]`,
		"Idempotency-Key: c\r\nContent-Length: 4\r\n\r\nbody":                            `4 [] "body" <nil> map[]`,
		"Idempotency-Key: d" + chunks:                                                    `-1 [chunked] "body" <nil> map[X-Sum:[7]]`,
		"X-No-Key: e\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n":        `-1 [chunked] "body" <nil> map[]`,
	} {
		answer := g.talk("POST /payments HTTP/1.1\r\nHost: bank\r\nConnection: close\r\n" + request)
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || got != want {
			t.Errorf("%q: the upstream got %s, want %s; the answer is %q", request, got, want, answer)
		}
	}
}
