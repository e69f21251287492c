package main

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

const (
	graphqlOne = `mutation($a: String!) { a: placeOrder(item: $a) { order } }`
	graphqlTwo = `mutation($a: String!, $b: String!) { a: placeOrder(item: $a) { order } b: placeOrder(item: $b) { order } }`
)

// query sends an operation.
func (s *service) query(key, query, variables string) answer {
	s.Helper()
	fields := []string{"Authorization", "Bearer ada", "Accept", "application/graphql-response+json, application/json;q=0.9"}
	if key != "" {
		fields = append(fields, "Idempotency-Key", key)
	}
	return s.post("/graphql", `{"query":"`+query+`","variables":`+variables+`}`, fields...)
}

func TestGraphQLMutationRunsOnce(t *testing.T) {
	t.Parallel()
	s := startBlocked(t)
	first := s.begin(func() answer { return s.query("k", graphqlOne, `{"a":"a book"}`) })
	s.want(s.query("k", graphqlOne, `{"a":"a book"}`), 409, false, "in-progress")
	s.finish()
	s.want(<-first, 200, false, `{"data":{"a":{"order":"1"}}}`)
	s.want(s.query("k", graphqlOne, `{"a":"a book"}`), 200, true, `{"data":{"a":{"order":"1"}}}`)
	s.want(s.query("k", graphqlOne, `{"a":"a pen"}`), 422, false, "key-reused")
	s.want(s.query("", graphqlOne, `{"a":"a book"}`), 400, false, `"errors"`)
	s.want(s.query("", `{ shop }`, `{}`), 200, false, `"data"`)
	s.ran(1)
}

// Of two 200s with errors, the one without any result runs again, and the one with a part
// of the results is kept, so that the part does not run twice.
func TestGraphQLErrorsAreNotKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 2 {
		s.want(s.query("failed", graphqlOne, `{"a":"sold out"}`), 200, false, `"data":{"a":null}`, `"errors"`)
	}
	s.ran(2)
	s.want(s.query("partly", graphqlTwo, `{"a":"a book","b":"sold out"}`), 200, false, `"b":null`, `"errors"`)
	s.want(s.query("partly", graphqlTwo, `{"a":"a book","b":"sold out"}`), 200, true, `"b":null`, `"errors"`)
	s.ran(4)
}

func TestGraphQLDecision(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]protocol.Decision{
		``:                                           protocol.ByPreset,
		`{"data":{"a":1}}`:                           protocol.ByPreset,
		`{"data":null}`:                              protocol.ByPreset,
		`{"errors":[],"data":null}`:                  protocol.ByPreset,
		`{"errors":[{"message":"no"}]}`:              protocol.ReleaseKey,
		`{"errors":[{}],"data":null}`:                protocol.ByPreset, // a result that cannot be null may hide one that succeeded
		`{"data":null,"errors":[{}]}`:                protocol.ByPreset,
		`{"errors":[{}],"data":{}}`:                  protocol.ReleaseKey,
		`{"data":{"a":null,"b":null},"errors":[{}]}`: protocol.ReleaseKey,
		`{"data":{"a":null,"b":0},"errors":[{}]}`:    protocol.ByPreset,
		`{"errors":[{}],"data":{"a":"` + strings.Repeat("x", 4000): protocol.ByPreset, // longer than the head
	} {
		if got := graphqlDecision(protocol.Ending{Status: 200, Head: []byte(head)}); got != want {
			t.Errorf("%.60s: %v, want %v", head, got, want)
		}
	}
}
