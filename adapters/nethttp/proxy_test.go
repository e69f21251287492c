package reprisehttp

import (
	"bufio"
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
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// bank is an upstream on a real listener. Its first request is handled as a test says,
// and all others get 201.
type bank struct {
	*httptest.Server
	requests atomic.Int64
	keys     atomic.Value // the fields of the last request
}

func newBank(t *testing.T, first http.HandlerFunc) *bank {
	t.Helper()
	b := &bank{}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.keys.Store(r.Header.Values("Idempotency-Key"))
		if b.requests.Add(1) == 1 && first != nil {
			first.ServeHTTP(w, r)
			return
		}
		execute(r)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}))
	b.Config.Protocols = new(http.Protocols)
	b.Config.Protocols.SetHTTP1(true)
	b.Config.Protocols.SetUnencryptedHTTP2(true)
	b.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	b.Start()
	t.Cleanup(b.Close)
	return b
}

// execute reads the request, as each operation of a [bank] does.
func execute(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// proxyTo returns a proxy in front of an address with credentials.
func proxyTo(t *testing.T, address string) *httputil.ReverseProxy {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: address, User: url.UserPassword("user", "secret")}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
}

// gateway is a guarded proxy on a real listener.
type gateway struct {
	*harness.App
	t       *testing.T
	records *memstore.Store
}

func newGateway(t *testing.T, preset reprise.Preset, p *httputil.ReverseProxy) *gateway {
	t.Helper()
	mux := http.NewServeMux()
	g := &gateway{t: t, records: memstore.New()}
	g.App = harness.New(t, g.records, mux)
	mux.Handle("/", Middleware(g.Guard(protocol.Config{Preset: preset}), Unscoped)(Proxy(p)))
	return g
}

// pay sends a payment with a key. The status is 0 if its response broke off.
func (g *gateway) pay(fields ...string) harness.Response {
	g.t.Helper()
	r := g.Request(http.MethodPost, "/payments", "12 EUR", append([]string{"Idempotency-Key", "k"}, fields...)...)
	r.GetBody = nil // net/http would repeat the request
	got, err := g.Try(r)
	if err != nil {
		return harness.Response{}
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
func (g *gateway) isUnknown(b *bank, requests int64, reason string) {
	g.t.Helper()
	for range 2 {
		if again := g.pay(); again.Status != http.StatusConflict || !strings.Contains(again.Body, "outcome-unknown") {
			g.t.Errorf("a retry got %d %q, want 409 outcome-unknown", again.Status, again.Body)
		}
	}
	if got := g.reason(); got != reason {
		g.t.Errorf("the reason is %q, want %q", got, reason)
	}
	b.got(g.t, requests)
}

func (b *bank) got(t *testing.T, requests int64) {
	t.Helper()
	if n := b.requests.Load(); n != requests {
		t.Errorf("the upstream got %d requests, want %d", n, requests)
	}
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
func TestProxyRefusesRetriesOfWhatMayHaveRun(t *testing.T) {
	t.Parallel()
	paid := func(w http.ResponseWriter, r *http.Request) {
		execute(r)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}
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
				b := newBank(t, test.first)
				p := proxyTo(t, b.Listener.Addr().String())
				if test.change != nil {
					test.change(p)
				}
				g := newGateway(t, preset, p)
				if first := g.pay(); first.Status != test.status {
					t.Errorf("the first client got %d %.200q, want %d", first.Status, first.Body, test.status)
				}
				g.isUnknown(b, 1, test.reason)
			})
		})
	}
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

func TestProxyRunsAgainWhatWasNotSent(t *testing.T) {
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
				b := newBank(t, nil)
				p := proxyTo(t, b.Listener.Addr().String())
				rewrite, first := p.Rewrite, new(sync.Once)
				p.Rewrite = func(r *httputil.ProxyRequest) {
					rewrite(r)
					first.Do(func() { fail(r) })
				}
				g := newGateway(t, preset, p)
				if first := g.pay(); first.Status != http.StatusServiceUnavailable {
					t.Errorf("the first client got %d %q, want 503", first.Status, first.Body)
				}
				b.got(t, 0)
				if second := g.pay(); second.Status != http.StatusCreated || second.Replayed() {
					t.Errorf("the retry got %d %q, replayed %v, want a run", second.Status, second.Body, second.Replayed())
				}
				if third := g.pay(); third.Status != http.StatusCreated || !third.Replayed() {
					t.Errorf("the next one got %d %q, want the replay", third.Status, third.Body)
				}
				b.got(t, 1)
			})
		})
	}
}

func TestWholeResponsesOfAnUpstreamAreThoseOfAHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  http.HandlerFunc
		change func(*httputil.ReverseProxy)
		fields []string
		status int
		again  map[reprise.Preset]bool // the retry reaches the upstream
	}{
		"a success": {status: http.StatusCreated},
		"a failure": {
			first:  func(w http.ResponseWriter, r *http.Request) { execute(r); w.WriteHeader(http.StatusServiceUnavailable) },
			status: http.StatusServiceUnavailable, again: map[reprise.Preset]bool{reprise.Recoverable: true},
		},
		"a refusal before the body": {
			first:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
			fields: []string{"Expect", "100-continue"}, status: http.StatusRequestEntityTooLarge,
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
				b := newBank(t, test.first)
				p := proxyTo(t, b.Listener.Addr().String())
				transportOf(p).ExpectContinueTimeout = harness.Patience
				if test.change != nil {
					test.change(p)
				}
				g := newGateway(t, preset, p)
				first, again := g.pay(test.fields...), g.pay(test.fields...)
				if first.Status != test.status || first.Replayed() {
					t.Errorf("the first client got %d %q, want %d", first.Status, first.Body, test.status)
				}
				requests := int64(1)
				if test.again[preset] {
					requests = 2
				} else if again.Status != first.Status || again.Body != first.Body || !again.Replayed() {
					t.Errorf("the retry got %d %q, want the replay of %d %q", again.Status, again.Body, first.Status, first.Body)
				}
				b.got(t, requests)
				if keys, _ := b.keys.Load().([]string); len(keys) != 1 || keys[0] != "k" {
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
				b := newBank(t, func(w http.ResponseWriter, r *http.Request) {
					execute(r)
					hangUp(w, "HTTP/"+version+" 201 Created\r\nX-Receipt: 7\r\n\r\npai")
				})
				g := newGateway(t, preset, proxyTo(t, b.Listener.Addr().String()))
				if first := g.pay(); first.Status != http.StatusCreated || first.Body != "pai" {
					t.Errorf("the first client got %d %q", first.Status, first.Body)
				}
				again := g.pay()
				if again.Status != http.StatusCreated || again.Header.Get("X-Receipt") != "7" || !again.Replayed() ||
					again.Header.Get("Idempotency-Body") != "omitted" {
					t.Errorf("the retry got %d %v %q, want the replay without its body", again.Status, again.Header, again.Body)
				}
				b.got(t, 1)
			})
		})
	}
}

func TestAnUpstreamThatChangesProtocolsIsUnknown(t *testing.T) {
	t.Parallel()
	forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
		b := newBank(t, func(w http.ResponseWriter, r *http.Request) {
			execute(r)
			hangUp(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bank\r\n\r\npaid")
		})
		g := newGateway(t, preset, proxyTo(t, b.Listener.Addr().String()))
		got := g.Talk("POST /payments HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: k\r\nConnection: Upgrade\r\nUpgrade: bank\r\nContent-Length: 6\r\n\r\n12 EUR")
		if !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "paid") {
			t.Fatalf("the client got %q", got)
		}
		g.Eventually(func() bool { return g.reason() != "" })
		g.isUnknown(b, 1, reasonChanged)
	})
}

// net/http repeats a request with this field and without a body when a reused connection
// breaks.
func TestProxyAsksTheUpstreamOnceThoughAReusedConnectionBreaks(t *testing.T) {
	t.Parallel()
	b := newBank(t, nil)
	inner := b.Config.Handler
	b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/payments" {
			inner.ServeHTTP(w, r)
			return
		}
		b.requests.Add(1)
		hangUp(w, "")
	})
	g := newGateway(t, reprise.AtMostOnce, proxyTo(t, b.Listener.Addr().String()))
	pay := func(path, key string) int {
		r := g.Request(http.MethodPost, path, "", "Idempotency-Key", key)
		got, err := g.Try(r)
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
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
	b.got(t, 2)
}

// R35: the upstream's response is whole and too long to be kept, whether or not the first
// client waits for all of it.
func TestR35AClientThatLeavesALongResponseIsNotUnknown(t *testing.T) {
	t.Parallel()
	forEachPreset(t, func(t *testing.T, preset reprise.Preset) {
		b := newBank(t, func(w http.ResponseWriter, r *http.Request) {
			execute(r)
			w.Header().Set("Content-Length", strconv.Itoa(64<<20))
			w.WriteHeader(http.StatusCreated)
			_, _ = io.CopyN(w, strings.NewReader(strings.Repeat("x", 64<<20)), 64<<20)
		})
		g := newGateway(t, preset, proxyTo(t, b.Listener.Addr().String()))
		resp, err := harness.Client.Do(g.Request(http.MethodPost, "/payments", "12 EUR", "Idempotency-Key", "k"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // after its first bytes
		g.Eventually(func() bool {
			again := g.pay()
			return again.Status == http.StatusCreated && again.Replayed() && again.Header.Get("Idempotency-Body") == "omitted"
		})
		b.got(t, 1)
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
			p := proxyTo(t, newBank(t, first).Listener.Addr().String())
			p.ModifyResponse = func(r *http.Response) error {
				if r.StatusCode == http.StatusSwitchingProtocols {
					return nil
				}
				_, err := io.Copy(io.Discard, r.Body)
				return err
			}
			p.ErrorHandler = func(w http.ResponseWriter, r *http.Request, _ error) {
				protocol.Keep(r.Context())
				w.WriteHeader(http.StatusTeapot)
			}
			g := newGateway(t, reprise.Recoverable, p)
			for i, replayed := range []bool{false, true} {
				if got := g.pay(); got.Status != http.StatusTeapot || got.Replayed() != replayed {
					t.Errorf("request %d got %d, replayed %v, want the response of the handler", i, got.Status, got.Replayed())
				}
			}
		})
	}
}

func TestProxyBelievesNoTransport(t *testing.T) {
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
			b := newBank(t, nil)
			p := proxyTo(t, b.Listener.Addr().String())
			p.Transport = test.transport
			if test.refuses {
				p.ModifyResponse = func(*http.Response) error { return errModify }
			}
			g := newGateway(t, reprise.Recoverable, p)
			if first := g.pay(); first.Status != test.status {
				t.Errorf("the first client got %d, want %d", first.Status, test.status)
			}
			g.isUnknown(b, 0, test.reason)
		})
	}
}

// The helpers of repriseclient find the call in the request of its response.
func TestProxyKeepsTheRequestThatATransportPutIntoTheResponse(t *testing.T) {
	t.Parallel()
	b := newBank(t, nil)
	p := proxyTo(t, b.Listener.Addr().String())
	base, own := p.Transport, &http.Request{}
	p.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err == nil {
			resp.Request = own
		}
		return resp, err
	})
	p.ModifyResponse = func(r *http.Response) error {
		if r.Request != own {
			t.Error("the response has another request")
		}
		return nil
	}
	if got := newGateway(t, reprise.Recoverable, p).pay(); got.Status != http.StatusCreated {
		t.Errorf("the client got %d", got.Status)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A body that the upstream did not read is no reason to panic, to lose the connection, or
// to wait for a client that holds it back.
func TestProxyToAnUpstreamThatReadsNoBody(t *testing.T) {
	t.Parallel()
	b := newBank(t, nil)
	p := proxyTo(t, b.Listener.Addr().String())
	b.Close()
	g := newGateway(t, reprise.Recoverable, p)
	for range 50 {
		r := g.Request(http.MethodPost, "/payments", strings.Repeat("12 EUR", 1000))
		if got, err := g.Try(r); err != nil || got.Status != http.StatusServiceUnavailable {
			t.Fatalf("got %+v, %v, want 503", got, err)
		}
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", g.Request(http.MethodPost, "/", "").URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "POST /payments HTTP/1.1\r\nHost: bank\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "503") {
		t.Errorf("got %q, %v, want 503", line, err)
	}
}

func TestProxyWithoutAKeyAnswersLikeAGateway(t *testing.T) {
	t.Parallel()
	b := newBank(t, func(w http.ResponseWriter, _ *http.Request) { hangUp(w, "") })
	g := newGateway(t, reprise.Recoverable, proxyTo(t, b.Listener.Addr().String()))
	if got := g.Send(http.MethodPost, "/payments"); got.Status != http.StatusBadGateway || !strings.Contains(got.Body, "may have executed") {
		t.Errorf("got %d %q", got.Status, got.Body)
	}
	b.got(t, 1)
	harness.Panics(t, func() { Proxy(nil) })
}

// The body of a run is in memory, so the upstream gets its length, also where the client
// sent it in chunks. Trailers follow chunks only.
func TestProxyDeclaresTheLengthOfABodyThatItHolds(t *testing.T) {
	t.Parallel()
	var got string
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got = fmt.Sprintf("%d %v %q %v %v", r.ContentLength, r.TransferEncoding, body, err, r.Trailer)
	}))
	t.Cleanup(bank.Close)
	g := newGateway(t, reprise.Recoverable, proxyTo(t, bank.Listener.Addr().String()))
	const chunks = "\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n"
	for request, want := range map[string]string{
		"Idempotency-Key: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n": `4 [] "body" <nil> map[]`,
		"Idempotency-Key: b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":              `0 [] "" <nil> map[]`,
		"Idempotency-Key: c\r\nContent-Length: 4\r\n\r\nbody":                            `4 [] "body" <nil> map[]`,
		"Idempotency-Key: d" + chunks:                                                    `-1 [chunked] "body" <nil> map[X-Sum:[7]]`,
		"X-No-Key: e\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n":        `-1 [chunked] "body" <nil> map[]`,
	} {
		answer := g.Talk("POST /payments HTTP/1.1\r\nHost: bank\r\nConnection: close\r\n" + request)
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || got != want {
			t.Errorf("%q: the upstream got %s, want %s; the answer is %q", request, got, want, answer)
		}
	}
}
