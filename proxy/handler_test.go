package proxy_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

const plain = "upstream = 'http://UPSTREAM'\nscope = 'header:Authorization'\n"

// Through a handler, too, an answer that breaks off, or does not come, is none.
func TestLostAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]http.HandlerFunc{
		"within the body": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"by a time-out": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // after which its server notices that the proxy left
			<-r.Context().Done()
		},
	} {
		b := setup(t, "response_timeout = '50ms'\n"+plain)
		b.handle(cut)
		if first := b.post("/orders", "k1"); first.err == nil && first.status != http.StatusGatewayTimeout {
			t.Errorf("%s: the first client got %d and the whole body %q", name, first.status, first.body)
		}
		if again := b.post("/orders", "k1"); again.status != http.StatusConflict || !bytes.Contains(again.body, []byte("outcome-unknown")) {
			t.Errorf("%s: the retry got %d %s, want 409 outcome-unknown", name, again.status, again.body)
		}
		b.wantRuns(1)
	}
}

func TestRetryGetsTheBytesOfTheFirstRun(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "h2c"} {
		b := setup(t, strings.ReplaceAll(plain, "http://", scheme+"://"))
		first := b.post("/orders?x=1", "k1")
		again := b.post("/orders?x=1", "k1")
		b.wantRuns(1)
		if first.status != http.StatusCreated || first.replayed() || !bytes.HasPrefix(first.body, allBytes()) {
			t.Errorf("%s: first: %d %v", scheme, first.status, first.header)
		}
		if again.status != first.status || !again.replayed() || !bytes.Equal(again.body, first.body) {
			t.Errorf("%s: replay: %d %v", scheme, again.status, again.header)
		}
		for _, own := range []string{"Date", "Idempotent-Replayed"} {
			first.header.Del(own)
			again.header.Del(own)
		}
		if !reflect.DeepEqual(first.header, again.header) {
			t.Errorf("%s: replay has the header %v, want %v", scheme, again.header, first.header)
		}
		if other := b.post("/orders?x=2", "k1"); other.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: the key with another query got %d, want 422", scheme, other.status)
		}
	}
}

func TestUpstreamThatDoesNotReadIsUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel accepts
	must(t, err)
	defer l.Close()
	b.upstream.URL = "http://" + l.Addr().String()
	must(t, b.handler.Reload(b.config("response_timeout = '50ms'\n"+plain+"[default]\nmax_request_body = 16777216\n")))
	large := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, 16<<20))), 16<<20
	}
	if first := b.post("/orders", "k1", large); first.status != http.StatusGatewayTimeout {
		t.Errorf("the first client got %d %v, want 504", first.status, first.err)
	}
	if again := b.post("/orders", "k1", large); again.status != http.StatusConflict {
		t.Errorf("the retry got %d %v, want 409", again.status, again.err)
	}
}

func TestRoutesHaveTheirPolicies(t *testing.T) {
	t.Parallel()
	b := setup(t, plain+`
[[route]]
match = ["POST /pay/", "POST /pay"]
required = true
[[route]]
match = ["/open/{rest...}"]
unkeyed = true
`)
	for path, want := range map[string]int{
		"/pay": 400, "/pay/x": 400, "/pay/%78": 400, "/other": 201, "/pays": 201,
	} {
		if got := b.post(path, ""); got.status != want {
			t.Errorf("%s without a key: %d, want %d", path, got.status, want)
		}
	}
	runs := b.runs.Load()
	for range 2 {
		if got := b.post("/open/a", "k1"); got.status != http.StatusCreated || got.replayed() {
			t.Errorf("/open/a with a key: %d %v", got.status, got.header)
		}
	}
	b.wantRuns(runs + 2)
}

// One upstream may serve several hosts, and a key of one of them says nothing of another.
func TestKeyOfOneHostNeverAnswersAnother(t *testing.T) {
	t.Parallel()
	for _, fingerprint := range []string{"'bytes'", "'json'\nfingerprint_headers = ['host']", "'none'"} {
		b := setup(t, "trusted_addresses = ['127.0.0.1']\n"+plain+"[default]\nfingerprint = "+fingerprint+"\n[[route]]\nmatch = ['own.example/']\nendpoint = 'own'\n")
		for _, c := range []struct {
			host, forwarded string
			status          int
			replayed        bool
		}{
			{"a.example", "", http.StatusCreated, false},
			{"A.example", "", http.StatusCreated, true},
			{"b.example", "", http.StatusUnprocessableEntity, false},
			{"a.example", "b.example", http.StatusUnprocessableEntity, false},
			{"own.example", "", http.StatusCreated, false},
		} {
			got := b.post("/orders", "k1", func(r *http.Request) { r.Host = c.host }, header("X-Forwarded-Host", c.forwarded))
			if got.status != c.status || got.replayed() != c.replayed {
				t.Errorf("%s: %+v got %d %v", fingerprint, c, got.status, got.header)
			}
		}
		b.wantRuns(2)
	}
}

func TestReloadKeepsRequestsThatRun(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	entered, held := make(chan struct{}), make(chan struct{})
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-held
		w.WriteHeader(http.StatusAccepted)
	})
	got := make(chan *answer)
	go func() { got <- b.post("/orders", "k1") }()
	<-entered
	must(t, b.handler.Reload(b.config(plain+"[default]\nrequired = true\n")))
	if now := b.post("/orders", ""); now.status != http.StatusBadRequest {
		t.Errorf("after the reload, a request without a key got %d, want 400", now.status)
	}
	close(held)
	if first := <-got; first.status != http.StatusAccepted {
		t.Errorf("the request that ran got %d", first.status)
	}
	if again := b.post("/orders", "k1"); !again.replayed() || again.status != http.StatusAccepted {
		t.Errorf("its retry got %d %v, want a replay", again.status, again.header)
	}
}

func TestUpstreamThatReplaysIsHeard(t *testing.T) {
	t.Parallel()
	for aware, want := range map[string]struct {
		marked bool
		runs   int64
	}{"true": {true, 2}, "false": {false, 1}} {
		b := setup(t, plain+"[default]\nupstream_aware = "+aware+"\n")
		b.handle(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Idempotent-Replayed", "true") })
		if first := b.post("/orders", "k1"); first.replayed() != want.marked || first.status != http.StatusOK {
			t.Errorf("aware %s: %d %v", aware, first.status, first.header)
		}
		if again := b.post("/orders", "k1"); !again.replayed() {
			t.Errorf("aware %s: the second response has no mark", aware)
		}
		b.wantRuns(want.runs)
	}
}

// An upstream that guards the key itself decides about its retries: its refusals and
// failures are not the answer, whole or not.
func TestResponsesThatAnAwareUpstreamDecidesAboutAreNotRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		marked bool
	}{
		{http.StatusConflict, false},
		{http.StatusServiceUnavailable, false},
		{http.StatusInternalServerError, false}, // such as record-corrupt, which has no Retry-After
		{http.StatusCreated, true},
	} {
		for _, whole := range []bool{true, false} {
			b := setup(t, plain+"[default]\nupstream_aware = true\n")
			first := true
			b.handle(func(w http.ResponseWriter, _ *http.Request) {
				if !first {
					return
				}
				if first = false; c.marked {
					w.Header().Set("Idempotent-Replayed", "true")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "half")
				if !whole {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			if got := b.post("/orders", "k1"); whole && (got.status != c.status || got.replayed() != c.marked) {
				t.Errorf("%+v: got %d %v", c, got.status, got.header)
			}
			if again := b.post("/orders", "k1"); again.status != http.StatusOK || again.replayed() {
				t.Errorf("%+v, whole %t: the retry got %d %v, want a run", c, whole, again.status, again.header)
			}
			b.wantRuns(2)
		}
	}
}

// The time in which a body has to come does not bound the wait that follows.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	t.Parallel()
	b := setup(t, "body_timeout = '1s'\n"+plain+"[default]\nwait = '1m'\n")
	entered, held := make(chan struct{}), make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { close(entered); <-held })
	got := make(chan *answer)
	for range 2 {
		go func() { got <- b.post("/orders", "k1") }()
	}
	<-entered
	<-time.After(1500 * time.Millisecond) // longer than the body may take
	close(held)
	first, second := <-got, <-got
	if first.status != http.StatusOK || second.status != http.StatusOK || first.replayed() == second.replayed() {
		t.Errorf("got %+v and %+v, want the run and its replay", first, second)
	}
	b.wantRuns(1)
}

func TestClientThatLeavesDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t, plain+"[default]\nwait = '1m'\n")
	entered, held := make(chan struct{}), make(chan struct{})
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-held
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(allBytes())
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan *answer)
	go func() {
		left <- b.post("/orders", "k1", func(r *http.Request) { *r = *r.WithContext(ctx) }) //nolint:contextcheck // it is given
	}()
	<-entered
	leave()
	<-left
	close(held)
	if again := b.post("/orders", "k1"); again.status != http.StatusAccepted || !again.replayed() || !bytes.Equal(again.body, allBytes()) {
		t.Errorf("the retry got %+v, want a replay", again)
	}
	b.wantRuns(1)
}
