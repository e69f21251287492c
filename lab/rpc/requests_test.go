package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func keyHeader(e *env) {
	s := e.serve(setup{Config: protocol.Config{Key: protocol.KeyHeader("X-Request-Key"), Required: true}})
	c := call{metadata: []pair{{"x-request-key", "k"}}}
	e.twice(s, c)
	e.refused(s, keyed("k"), invalidArgument, "KEY_MISSING")
}

func keyForms(e *env) {
	s := e.serve(setup{})
	first, again := e.call(s, keyed("k-1")), e.call(s, keyed(`"k-1"; a=1`))
	e.wantRuns(s, 1)
	e.same(first, again)
}

func keyInvalid(e *env) {
	s := e.serve(setup{})
	for _, key := range []string{`""`, `"open`, `a b`, `"a", "b"`, strings.Repeat("k", 256)} {
		e.refused(s, keyed(key), invalidArgument, "KEY_INVALID")
	}
	strict := e.serve(setup{Config: protocol.Config{KeyMode: protocol.Strict}})
	e.refused(strict, keyed("bare"), invalidArgument, "KEY_INVALID")
}

func keyRepeated(e *env) {
	s := e.serve(setup{Config: protocol.Config{Key: protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key")}})
	e.refused(s, call{keys: []string{"k", "k"}}, invalidArgument, "KEY_INVALID")
	e.refused(s, call{keys: []string{"k"}, metadata: []pair{{"x-idempotency-key", "k"}}}, invalidArgument, "KEY_INVALID")
}

func passes(e *env) {
	s := e.serve(setup{})
	for n, c := range []call{{}, {}, {procedure: read, keys: []string{"k"}}, {procedure: read, keys: []string{"k"}}, {procedure: check, keys: []string{"k"}}} {
		if a := e.call(s, c); a.code != 0 || a.replayed() || int(a.body[0]) != n+1 {
			e.Errorf("%v is answered with %+v", c, a)
		}
	}
}

func required(e *env) {
	s := e.serve(setup{Config: protocol.Config{Required: true}})
	e.refused(s, call{}, invalidArgument, "KEY_MISSING")
	for _, procedure := range []string{read, check} {
		if a := e.call(s, call{procedure: procedure}); a.code != 0 {
			e.Errorf("%s without a key: %+v", procedure, a)
		}
	}
	if a := s.stream(e.Context(), call{}); a.code != 0 || a.body[0] != 3 {
		e.Errorf("a stream without a key: %+v", a)
	}
}

func independent(e *env) {
	s := e.serve(setup{scope: func(_ context.Context, metadata func(string) string) (string, error) {
		return metadata("x-tenant"), nil
	}})
	for _, c := range []call{
		{keys: []string{"a"}, metadata: []pair{{"x-tenant", "1"}}},
		{keys: []string{"b"}, metadata: []pair{{"x-tenant", "1"}}},
		{keys: []string{"a"}, metadata: []pair{{"x-tenant", "2"}}},
		{keys: []string{"a"}, metadata: []pair{{"x-tenant", "2"}}, in: ""},
	} {
		e.call(s, c)
	}
	e.wantRuns(s, 3)
}

func otherMessage(e *env) {
	s := e.serve(setup{})
	first := e.call(s, call{keys: []string{"k"}, in: "book"})
	e.refused(s, call{keys: []string{"k"}, in: "boot"}, failedPrecondition, "KEY_REUSED")
	e.same(first, e.call(s, call{keys: []string{"k"}, in: "book"}))
	e.wantRuns(s, 1)
}

func otherMethod(e *env) {
	s := e.serve(setup{})
	e.call(s, keyed("k"))
	e.refused(s, call{keys: []string{"k"}, procedure: cancel}, failedPrecondition, "KEY_REUSED")
	perEndpoint := e.serve(setup{Config: protocol.Config{Endpoint: "orders"}})
	e.twice(perEndpoint, keyed("k"))
}

func sameCall(e *env) {
	s := e.serve(setup{})
	first := e.call(s, keyed("k"))
	for range 20 { // the fields of the message are a map, whose order is another each time
		e.same(first, e.call(s, call{keys: []string{"k"}, metadata: []pair{{"authorization", "other"}, {"traceparent", "other"}, {"x-any-bin", "\x00"}}}))
	}
	e.wantRuns(s, 1)

	versioned := e.serve(setup{Config: protocol.Config{Fingerprint: protocol.Fingerprinting{Headers: []string{"X-Version", "Host"}}}})
	e.twice(versioned, call{keys: []string{"k"}, metadata: []pair{{"x-version", "1"}}})
	e.refused(versioned, call{keys: []string{"k"}, metadata: []pair{{"x-version", "2"}}}, failedPrecondition, "KEY_REUSED")
}

func largeRequest(e *env) {
	s := e.serve(setup{Config: protocol.Config{Limits: protocol.Limits{RequestBody: 1000}}})
	e.refused(s, call{keys: []string{"k"}, in: strings.Repeat("x", 1000)}, resourceExhausted, "REQUEST_TOO_LARGE")
	e.twice(s, call{keys: []string{"k"}, in: strings.Repeat("x", 500)})
	if a := e.call(s, call{in: strings.Repeat("x", 2000)}); a.code != 0 {
		e.Errorf("a large message without a key: %+v", a)
	}
}

func scopePanics(e *env) {
	broken := true
	s := e.serve(setup{scope: func(context.Context, func(string) string) (string, error) {
		if broken {
			panic("scope")
		}
		return "tenant", nil
	}})
	e.refused(s, keyed("k"), internal, "INTERNAL_ERROR")
	if a := e.call(s, call{}); a.code != 0 {
		e.Errorf("a call without a key asked for its scope: %+v", a)
	}
	broken = false
	e.twice(s, keyed("k"))
}

func scopes(e *env) {
	s := e.serve(setup{
		scope: func(_ context.Context, metadata func(string) string) (string, error) {
			return metadata("x-tenant"), nil
		},
		handler: func(_ context.Context, in *request) outcome {
			return outcome{body: []byte(in.GetFields()["item"].GetStringValue())}
		},
	})
	of := func(tenant, in string) call {
		return call{keys: []string{"k"}, in: in, metadata: []pair{{"x-tenant", tenant}}}
	}
	for range 2 {
		for _, tenant := range []string{"one", "two"} {
			if a := e.call(s, of(tenant, "of "+tenant)); string(a.body) != "of "+tenant {
				e.Errorf("%s got %q", tenant, a.body)
			}
		}
	}
	e.wantRuns(s, 2)
}

func scopeMissing(e *env) {
	for _, scope := range []scopeOf{
		func(context.Context, func(string) string) (string, error) { return "", nil },
		func(context.Context, func(string) string) (string, error) { return "", errors.New("who?") },
		func(context.Context, func(string) string) (string, error) { return "a\x00", nil },
	} {
		s := e.serve(setup{scope: scope})
		e.refused(s, keyed("k"), permissionDenied, "SCOPE_MISSING")
	}
	s := e.serve(setup{scope: func(context.Context, func(string) string) (string, error) {
		return "", fmt.Errorf("%w: tenant database: connection refused", store.ErrUnavailable)
	}})
	e.refused(s, keyed("k"), unavailable, "STORE_UNAVAILABLE")
}

func duplicates(e *env) {
	h, running, letGo := hold()
	s := e.serve(setup{handler: h})
	first := make(chan answer, 1)
	go func() { first <- s.call(e.Context(), keyed("k")) }()
	<-running
	answers := make(chan answer, 8)
	for range cap(answers) {
		go func() { answers <- s.call(e.Context(), keyed("k")) }()
	}
	for range cap(answers) {
		a := <-answers
		if a.code != aborted || reasonOf(a) != "IN_PROGRESS" || delayOf(a) != time.Second {
			e.Errorf("a duplicate got %d %s, to be retried after %v", a.code, reasonOf(a), delayOf(a))
		}
	}
	letGo()
	e.same(<-first, e.call(s, keyed("k")))
	e.wantRuns(s, 1)
}

func waiting(e *env) {
	h, running, letGo := hold()
	s := e.serve(setup{handler: h, Config: protocol.Config{Wait: time.Minute}})
	answers := make(chan answer, 4)
	go func() { answers <- s.call(e.Context(), keyed("k")) }()
	<-running
	for range cap(answers) - 1 {
		go func() { answers <- s.call(e.Context(), keyed("k")) }()
	}
	letGo()
	replays := 0
	for range cap(answers) {
		a := <-answers
		if string(a.body) != "done" {
			e.Errorf("a call got %+v", a)
		}
		if a.replayed() {
			replays++
		}
	}
	if replays != cap(answers)-1 {
		e.Errorf("%d replays", replays)
	}
	e.wantRuns(s, 1)
}

func refusals(e *env) {
	s := e.serve(setup{Config: protocol.Config{Required: true, Problems: protocol.ProblemFormat{Base: "https://example.com/problems#"}}})
	a := e.refused(s, call{}, invalidArgument, "KEY_MISSING")
	info := infoOf(a)
	if info.GetDomain() != "github.com/reprise-go/reprise" || info.GetMetadata()["type"] != "https://example.com/problems#key-missing" {
		e.Errorf("the ErrorInfo is %v", info)
	}
	if !strings.Contains(a.message, "Idempotency-Key") || delayOf(a) != 0 || len(a.details) != 1 {
		e.Errorf("the refusal is %+v", a)
	}
	secret := e.refused(s, keyed(`"my secret key`), invalidArgument, "KEY_INVALID")
	if strings.Contains(secret.message+strings.Join(secret.details, ""), "secret") {
		e.Errorf("the refusal has the key: %+v", secret)
	}
	if got := slices.Sorted(func(yield func(string) bool) {
		for name := range secret.header {
			if strings.HasPrefix(name, "idempot") && !yield(name) {
				return
			}
		}
	}); len(got) != 0 {
		e.Errorf("the refusal is marked: %v", got)
	}
}
