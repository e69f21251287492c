package edges_test

import (
	"context"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
)

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
}

func sameCall(e *env) {
	s := e.serve(setup{})
	first := e.call(s, keyed("k"))
	for range 20 { // the fields of the message are a map, whose order is another each time
		e.same(first, e.call(s, call{keys: []string{"k"}, metadata: []pair{{"authorization", "other"}, {"traceparent", "other"}, {"x-any-bin", "\x00"}}}))
	}
	e.wantRuns(s, 1)
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
	for name := range secret.header {
		if strings.HasPrefix(name, "idempot") {
			e.Errorf("the refusal is marked: %s", name)
		}
	}
}
