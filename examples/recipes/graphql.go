package main

import (
	"encoding/json"
	"net/http"
	"strings"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// graphqlAPI serves mutations and queries of GraphQL at one path
// (https://graphql.github.io/graphql-over-http/draft/).
//
//   - The key is in the header. Queries need none, so the policy does not require it, and
//     the server behind it demands one for mutations: see [serveGraphQL].
//   - A failure is a 200 with "errors", which [graphqlDecision] does not keep.
func graphqlAPI(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Label: "graphql", Keep: protocol.Keeping{Decide: graphqlDecision}, Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON},
	}))
	return reprisehttp.Middleware(guard, client)(serveGraphQL(l))
}

// graphqlDecision releases the key of a mutation that failed as a whole: there are
// errors, and no root field has a value. If a root field has a value, a part has
// succeeded and would run twice, so the response is kept. A response that is longer than
// its head is kept, too, and one whose data is null: then a non-nullable result failed,
// which hides the results of the fields before it. So failures run again only if results
// are nullable.
func graphqlDecision(e protocol.Ending) protocol.Decision {
	var out struct {
		Data   json.RawMessage
		Errors []json.RawMessage
	}
	if json.Unmarshal(e.Head, &out) != nil || len(out.Errors) == 0 {
		return protocol.ByPreset
	}
	if len(out.Data) == 0 { // nothing was executed
		return protocol.ReleaseKey
	}
	var fields map[string]any
	if json.Unmarshal(out.Data, &fields) != nil || fields == nil {
		return protocol.ByPreset
	}
	for _, value := range fields {
		if value != nil {
			return protocol.ByPreset
		}
	}
	return protocol.ReleaseKey
}

// serveGraphQL stands in for a GraphQL server. A mutation places an order for each
// variable, whose name is the alias of a nullable result.
func serveGraphQL(l *ledger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Query     string
			Variables map[string]string
		}
		err := json.NewDecoder(r.Body).Decode(&in)
		_, keyed := reprise.AttemptFrom(r.Context())
		type failure struct {
			Message string   `json:"message"`
			Path    []string `json:"path,omitempty"`
		}
		switch {
		case err != nil, strings.HasPrefix(in.Query, "mutation") && !keyed: // is not executed: it has no data
			respond(w, http.StatusBadRequest, map[string]any{"errors": []failure{{Message: "A mutation needs an Idempotency-Key, and a request is JSON."}}})
			return
		case !strings.HasPrefix(in.Query, "mutation"):
			respond(w, http.StatusOK, map[string]any{"data": map[string]string{"shop": "open"}})
			return
		}
		data, failures := make(map[string]any), []failure{}
		for alias, item := range in.Variables {
			number := l.add()
			if item == "sold out" {
				data[alias] = nil
				failures = append(failures, failure{"It is sold out.", []string{alias}})
				continue
			}
			data[alias] = map[string]int64{"order": number}
		}
		out := map[string]any{"data": data}
		if len(failures) > 0 {
			out["errors"] = failures
		}
		respond(w, http.StatusOK, out)
	})
}
