package harness

import (
	"crypto/rand"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

// Client follows no redirection and decodes no content.
var Client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       Patience,
}

// marker is the field that marks a replay.
var marker = protocol.FieldReplayed

// A Response is a response that a client read to its end.
type Response struct {
	Status  int
	Header  http.Header
	Body    string
	Trailer http.Header
	Hints   int // responses with status 103 before it
}

// Replayed reports whether the response is marked as a replay.
func (r Response) Replayed() bool { return r.Header.Get(marker) == "true" }

// Kept returns the fields that a replay has in common with the first response. A layer
// outside may set X-Outer, which is not kept.
func (r Response) Kept() http.Header {
	h := r.Header.Clone()
	for _, own := range []string{"Date", "Content-Length", marker, "X-Outer"} {
		h.Del(own)
	}
	return h
}

// Request makes a request; fields are names and values in turn.
func (a *App) Request(method, path, body string, fields ...string) *http.Request {
	a.tb.Helper()
	r, err := http.NewRequestWithContext(a.tb.Context(), method, a.server.URL+path, strings.NewReader(body))
	if err != nil {
		a.tb.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// Try sends a request. The error says that the response did not come, or not in full.
func (a *App) Try(r *http.Request) (Response, error) {
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		if code == http.StatusEarlyHints {
			hints++
		}
		return nil
	}}
	res, err := Client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return Response{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return Response{res.StatusCode, res.Header, string(body), res.Trailer, hints}, err
}

// Send sends a request with a body, and fails the test if there is no response.
func (a *App) Send(method, path string, fields ...string) Response {
	a.tb.Helper()
	got, err := a.Try(a.Request(method, path, "body", fields...))
	if err != nil {
		a.tb.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// Twice sends a request with a new key and then its retry, and fails the test unless the
// second response is the replay of the first.
func (a *App) Twice(method, path string, fields ...string) (first, again Response) {
	a.tb.Helper()
	fields = append(slices.Clip(fields), "Idempotency-Key", rand.Text())
	first, again = a.Send(method, path, fields...), a.Send(method, path, fields...)
	if first.Replayed() || !again.Replayed() {
		a.tb.Fatalf("%s %s: replayed is %v and then %v, want false and true: %+v", method, path, first.Replayed(), again.Replayed(), again)
	}
	if first.Status != again.Status || first.Body != again.Body {
		a.tb.Errorf("%s %s: the replay is %d %.200q, and the first response was %d %.200q", method, path, again.Status, again.Body, first.Status, first.Body)
	}
	if got, want := again.Kept(), first.Kept(); !maps.EqualFunc(got, want, slices.Equal) {
		a.tb.Errorf("%s %s: the replay has the fields %v, and the first response had %v", method, path, got, want)
	}
	return first, again
}

// Afresh sends a request with a new key and then its retry, and fails the test unless the
// second one ran again.
func (a *App) Afresh(method, path string) (first, again Response) {
	a.tb.Helper()
	key := rand.Text()
	first, again = a.Send(method, path, "Idempotency-Key", key), a.Send(method, path, "Idempotency-Key", key)
	if first.Replayed() || again.Replayed() {
		a.tb.Errorf("%s %s: replayed is %v and then %v, want false twice: %+v", method, path, first.Replayed(), again.Replayed(), again)
	}
	return first, again
}

// Talk writes to a new connection and returns the bytes that come back until the
// application closes it.
func (a *App) Talk(text string) string {
	a.tb.Helper()
	conn, err := new(net.Dialer).DialContext(a.tb.Context(), "tcp", a.server.Listener.Addr().String())
	if err != nil {
		a.tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(conn, text); err != nil {
		a.tb.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		a.tb.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}
