package judge

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// fault is how a proxy spoils one exchange.
type fault int

// The faults. The proxy reads the whole answer behind loseAnswer and cutAnswer, so that
// it can be compared; the service sees a perfect exchange. Behind dropAnswer and
// breakAnswer the service sees its client go.
const (
	none        fault = iota
	loseRequest       // no byte of the request arrives
	cutRequest        // the connection to the service breaks within the request
	loseAnswer        // the answer does not leave the proxy
	dropAnswer        // the connection to the service breaks before the answer
	cutAnswer         // the connection to the client breaks within the answer
	breakAnswer       // the connection to the service breaks within the answer
)

// proxy stands between a client of net/http and the service, on loopback. It spoils the
// first exchanges, and keeps the answers of the service that its client did not get.
type proxy struct {
	env    *env
	server *http.Server
	url    string

	mu     sync.Mutex
	faults []fault
	lost   []*wire.Answer
	err    error // the first reason why a call could not be sent
}

// patience is how long the client waits for an answer.
func (p *proxy) patience() time.Duration { return p.env.options.Slow / 2 }

func (e *env) proxy(faults []fault) *proxy {
	var listening net.ListenConfig
	l, err := listening.Listen(e.ctx, "tcp", "127.0.0.1:0")
	e.must(err)
	p := &proxy{env: e, faults: faults, url: "http://" + l.Addr().String() + e.options.URL.RequestURI()}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: e.options.Client.Limits.Timeout}
	go func() { _ = p.server.Serve(l) }()
	return p
}

// stop ends the proxy once all its calls have ended, and returns the lost answers.
func (p *proxy) stop() []*wire.Answer {
	_ = p.server.Shutdown(p.env.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	call := wire.Call{Method: r.Method, Target: p.env.options.URL.RequestURI(), Host: p.env.options.URL.Host, Body: string(body)}
	for name, values := range r.Header {
		if name == "Content-Length" {
			continue
		}
		for _, v := range values {
			call = call.With(name, v)
		}
	}
	fault := p.next()
	if fault == loseRequest || p.breaks(fault, call) {
		panic(http.ErrAbortHandler)
	}
	a, err := p.env.try(p.env.options.URL, call)
	if err != nil {
		p.unsent(err)
		panic(http.ErrAbortHandler)
	}
	if fault != none {
		p.mu.Lock()
		p.lost = append(p.lost, a)
		p.mu.Unlock()
	}
	if fault == loseAnswer {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for name, values := range a.Header {
		h[name] = slices.Clone(values)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	if fault == cutAnswer {
		_, _ = io.WriteString(w, a.Body[:len(a.Body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, a.Body)
}

// breaks sends a call whose connection to the service breaks by a fault, if it is one.
func (p *proxy) breaks(f fault, c wire.Call) bool {
	bytes := c.Bytes()
	switch f {
	case cutRequest:
		bytes = bytes[:len(bytes)-len(c.Body)/2]
	case dropAnswer, breakAnswer:
	default:
		return false
	}
	conn, err := p.env.open(p.env.options.URL)
	if err == nil {
		err = conn.Begin(bytes)
	}
	if err != nil {
		p.unsent(err)
		return true
	}
	if f == breakAnswer {
		_ = conn.Await(p.patience())
	}
	conn.Reset()
	return true
}

// unsent keeps an error that is not the service's answer to the call: a limit of the
// client, or a connection that was refused.
func (p *proxy) unsent(err error) {
	var unreachable *wire.DialError
	if !errors.Is(err, wire.ErrLimit) && !errors.As(err, &unreachable) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = cmp.Or(p.err, err)
}

func (p *proxy) unsentError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		return none
	}
	next := p.faults[0]
	p.faults = p.faults[1:]
	return next
}

// retry sends a call until it has an answer that is final: not a 409 that says when to
// retry, nor a 503.
func (p *proxy) retry(c wire.Call) *wire.Answer {
	e := p.env
	client := &http.Client{
		Timeout: p.patience(), Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would leave the guard
	}
	var last *wire.Answer
	var err error
	for range 40 {
		if last, err = send(e, client, p.url, c); err == nil && last.Status != http.StatusConflict && last.Status != http.StatusServiceUnavailable {
			return last
		}
		e.must(p.unsentError())
		e.pause(p.patience() / 4)
		client.Timeout += p.patience() / 4
	}
	if err != nil {
		e.fail("the client got no answer: %v", err)
	}
	return last
}

// send sends a call with a client of net/http.
func send(e *env, client *http.Client, to string, c wire.Call) (*wire.Answer, error) {
	r, err := http.NewRequestWithContext(e.ctx, c.Method, to, strings.NewReader(c.Body))
	if err != nil {
		return nil, err
	}
	for _, f := range c.Fields {
		r.Header.Add(f.Name, f.Value)
	}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, errors.Join(errors.New("the answer broke off"), err)
	}
	return &wire.Answer{Status: got.StatusCode, Header: got.Header, Body: string(body)}, nil
}
