package labtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Private is the clear text that one operation's record is made from: strings to look for
// in the data that a store wrote.
type Private struct {
	sealed      bool
	key, secret string
	request     string
	answer      []string // of the response
}

// RecordPrivate runs an operation on a store, and replays it, with a guard that seals or
// not.
func RecordPrivate(tb testing.TB, st store.Store, sealed bool) Private {
	tb.Helper()
	jane := store.NewOwner() // a server has the records of other tests, too
	name := fmt.Sprintf("Jane-Doe-%x", jane[:])
	p := Private{
		sealed: sealed, key: "key-of-" + name, secret: "the secret of the service of " + name, request: "a request of " + name,
		answer: []string{"the account of " + name, "a field about " + name},
	}
	engine, err := reprise.New(st, reprise.Config{})
	Must(tb, err)
	tb.Cleanup(func() { _ = engine.Close(context.WithoutCancel(tb.Context())) })
	secret, err := protocol.NewSecret("2026-11", []byte(p.secret))
	Must(tb, err)
	var policy protocol.Config
	if sealed {
		policy.Seal.Secret = secret
	}
	guard, err := protocol.Over(engine, policy)
	Must(tb, err)
	admit := func() protocol.Admission {
		return guard.Admit(tb.Context(), protocol.Request{
			Method: "POST", Path: "/accounts", Header: http.Header{"Idempotency-Key": {p.key}}, Body: bytes.NewReader([]byte(p.request)),
		}, func() (string, error) { return "tenant", nil })
	}
	first := admit()
	if first.Exchange == nil {
		tb.Fatalf("the first request is answered %d %s", first.Response.Status, first.Response.Body)
	}
	first.Exchange.Before(func(func(string, string) bool) {})
	first.Exchange.After(func(yield func(string, string) bool) { yield("X-About", p.answer[1]) })
	first.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte(p.answer[0])})
	first.Exchange.Close()
	replay := admit().Response
	if about, _ := replay.Header.Get("X-About"); replay.Status != 201 || string(replay.Body) != p.answer[0] || about != p.answer[1] {
		tb.Fatalf("replayed %d %q", replay.Status, replay.Body)
	}
	return p
}

// WantAbsent demands that no private string is in the data that a store wrote. An
// unsealed response must be there, to show that the dump is complete.
func (p Private) WantAbsent(tb testing.TB, where string, dump []byte) {
	tb.Helper()
	for _, text := range []string{p.key, p.secret, p.request} {
		if bytes.Contains(dump, []byte(text)) {
			tb.Errorf("%q is in %s (%d bytes)", text, where, len(dump))
		}
	}
	for _, text := range p.answer {
		if found := bytes.Contains(dump, []byte(text)); found == p.sealed {
			tb.Errorf("sealed %t: %q is in %s (%d bytes): %t", p.sealed, text, where, len(dump), found)
		}
	}
}
