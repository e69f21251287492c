package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// service is the program on a loopback port.
type service struct {
	*testing.T

	ledger *ledger
	engine *reprise.Engine
	server *httptest.Server

	started, release chan struct{} // of the handler that works first, if blocked
}

// start starts the service of a test.
func start(t *testing.T) *service {
	t.Helper()
	return (&service{T: t, ledger: new(ledger)}).listen()
}

// startBlocked starts a service whose first handler works until finish.
func startBlocked(t *testing.T) *service {
	t.Helper()
	s := &service{T: t, ledger: new(ledger), started: make(chan struct{}), release: make(chan struct{})}
	var begun atomic.Bool
	s.ledger.working = func() {
		if begun.CompareAndSwap(false, true) {
			close(s.started)
			<-s.release
		}
	}
	return s.listen()
}

func (s *service) listen() *service {
	s.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		s.Fatal(err)
	}
	s.engine = engine
	s.server = httptest.NewServer(newAPI(engine, s.ledger))
	s.Cleanup(func() {
		s.server.Close()
		if err := engine.Close(context.WithoutCancel(s.Context())); err != nil {
			s.Error(err)
		}
	})
	return s
}

// answer is a response.
type answer struct {
	status   int
	body     string
	replayed bool
	header   http.Header
}

// post sends a POST in JSON. fields are names and values in turn.
func (s *service) post(path, body string, fields ...string) (a answer) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return answer{}
	}
	r.Header.Set("Content-Type", "application/json")
	for field := range slices.Chunk(fields, 2) {
		r.Header.Set(field[0], field[1])
	}
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Error(err)
	}
	return answer{res.StatusCode, string(text), res.Header.Get("Idempotent-Replayed") == "true", res.Header}
}

// begin sends a request and returns when its handler works. Its response comes after
// finish.
func (s *service) begin(send func() answer) (first <-chan answer) {
	s.Helper()
	answers := make(chan answer, 1)
	go func() { answers <- send() }()
	select {
	case <-s.started:
	case a := <-answers:
		s.Fatalf("answered without a handler: %+v", a)
	}
	return answers
}

// finish lets the handler of begin go on.
func (s *service) finish() { close(s.release) }

// want compares a response: parts are in its body.
func (s *service) want(a answer, status int, replayed bool, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			s.Errorf("the body is %s, without %s", a.body, part)
		}
	}
	if a.status != status || a.replayed != replayed {
		s.Errorf("answered %d %s, replayed %v; want %d, %v", a.status, a.body, a.replayed, status, replayed)
	}
}

// ran demands that so many effects happened.
func (s *service) ran(effects int) {
	s.Helper()
	if got := s.ledger.count(); got != effects {
		s.Errorf("%d effects, want %d: %q", got, effects, s.ledger.effects)
	}
}
