package rpc_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/typepb"

	"github.com/reprise-go/reprise/core/protocol"
)

// inField is a policy whose keys are in a field of entries.
func inField(cfg protocol.Config) protocol.Config {
	cfg.Key = protocol.KeyField("/source_context/file_name")
	return cfg
}

// entryWith returns a call of Register whose message has a key, for an entry with a name.
func entryWith(key, name string) call {
	return call{entry: &entry{Name: name, SourceContext: &sourcecontextpb.SourceContext{FileName: key}}}
}

func keyInField(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{Required: true})})
	c := entryWith("k", "a")
	first, _ := e.twice(s, c)
	e.refused(s, entryWith("k", "b"), failedPrecondition, "KEY_REUSED")
	e.twice(s, entryWith("k-2", "b"))
	e.same(first, e.call(s, c))
	byJSON := e.serve(setup{Config: protocol.Config{Key: protocol.KeyField("/sourceContext/fileName")}})
	e.twice(byJSON, c)
	e.twice(e.serve(setup{Config: protocol.Config{Key: protocol.KeyField("/name")}}), c)
}

func keyFieldAbsent(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{Required: true})})
	for _, c := range []call{{entry: new(entry)}, {entry: &entry{Name: "a", SourceContext: new(sourcecontextpb.SourceContext)}}, {in: "an order"}} {
		a := e.refused(s, c, invalidArgument, "KEY_MISSING")
		if !strings.Contains(a.message, "field /source_context/file_name of the request body") {
			e.Errorf("the refusal does not name the source: %s", a.message)
		}
	}
	for _, c := range []call{{procedure: read}, {procedure: check}} {
		if a := e.call(s, c); a.code != 0 {
			e.Errorf("%v: %+v", c, a)
		}
	}
	if a := s.stream(e.Context(), call{}); a.code != 0 || a.body[0] != 3 {
		e.Errorf("a stream: %+v", a)
	}
	optional := e.serve(setup{Config: inField(protocol.Config{}), scope: func(context.Context, func(string) string) (string, error) {
		return "", errors.New("the scope is not needed")
	}})
	for n, c := range []call{{entry: &entry{Name: "a"}}, {entry: &entry{Name: "a"}}, {in: "an order"}} {
		if a := e.call(optional, c); a.code != 0 || a.replayed() || int(a.body[0]) != n+1 {
			e.Errorf("%v is answered with %+v", c, a)
		}
	}
	lists := e.serve(setup{Config: protocol.Config{Key: protocol.KeyField("/methods/name")}})
	if a := e.call(lists, call{entry: &entry{Name: "a"}}); a.code != 0 {
		e.Errorf("a list that is empty on the way to the key: %+v", a)
	}
}

func keyFieldInvalid(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{})})
	for _, key := range []string{" ", "a b", `""`, `"open`, "a\x00", "é", strings.Repeat("k", 256), strings.Repeat("k", 1<<20)} {
		if a := e.refused(s, entryWith(key, "a"), invalidArgument, "KEY_INVALID"); strings.Contains(a.message, strings.TrimSpace(key)) && len(key) > 2 {
			e.Errorf("the refusal has the key: %s", a.message)
		}
	}
	full := &entry{Name: "a", Methods: []*apipb.Method{{Name: "k"}}, Syntax: typepb.Syntax_SYNTAX_PROTO3, SourceContext: &sourcecontextpb.SourceContext{FileName: "k"}}
	for pointer, want := range map[string]string{
		"/methods/name": "a value on the way to it is not an object", "/methods/0/name": "a value on the way to it is not an object",
		"/name/k": "a value on the way to it is not an object", "/syntax": "is not a string", "/methods": "is not a string", "/source_context": "is not a string",
	} {
		other := e.serve(setup{Config: protocol.Config{Key: protocol.KeyField(pointer)}})
		if a := e.refused(other, call{entry: full}, invalidArgument, "KEY_INVALID"); !strings.Contains(a.message, want) {
			e.Errorf("%s: %s", pointer, a.message)
		}
	}
}

func keyFieldDiffers(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{Required: true})})
	c := entryWith("k", "a")
	both := c
	both.keys = []string{`"k"`}
	first := e.call(s, both)
	e.same(first, e.call(s, c))
	e.wantRuns(s, 1)
	for _, keys := range [][]string{{"other"}, {"not a key"}, {"k", "k"}} {
		other := c
		other.keys = keys
		e.refused(s, other, invalidArgument, "KEY_INVALID")
	}
	e.twice(s, call{keys: []string{"k-2"}, entry: &entry{Name: "a"}})
	e.twice(s, keyed("k-3")) // whose message has no such field
}

func keyFieldOrder(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{Limits: protocol.Limits{RequestBody: 1000}}), scope: func(_ context.Context, metadata func(string) string) (string, error) {
		return metadata("x-tenant"), nil
	}})
	large := strings.Repeat("x", 2000)
	e.refused(s, entryWith("not a key", large), invalidArgument, "KEY_INVALID")
	e.refused(s, entryWith("k", large), permissionDenied, "SCOPE_MISSING")
	tenant := entryWith("k", large)
	tenant.metadata = []pair{{"x-tenant", "a"}}
	e.refused(s, tenant, resourceExhausted, "REQUEST_TOO_LARGE")
	if a := e.call(s, call{entry: &entry{Name: large}}); a.code != 0 {
		e.Errorf("a large message without a key: %+v", a)
	}
}

func keyOfFunction(e *env) {
	find := func(r *protocol.Request, body []byte) (string, error) {
		in := new(entry)
		if id := strings.Join(r.Header.Values("x-event"), " "); id != "" || r.Path != register {
			return id, nil
		}
		if err := proto.Unmarshal(body, in); err != nil || in.GetName() == "forged" {
			return "", errors.New("the signature is wrong")
		}
		return in.GetName(), nil
	}
	s := e.serve(setup{Config: protocol.Config{Key: protocol.KeyFunc("event ID", find), Required: true}})
	e.twice(s, call{metadata: []pair{{"x-event", "e-1"}}})
	e.twice(s, call{entry: &entry{Name: "e-2"}})
	e.refused(s, call{}, invalidArgument, "KEY_MISSING")
	e.refused(s, call{entry: &entry{Name: "forged"}}, invalidArgument, "KEY_INVALID")
	e.refused(s, call{metadata: []pair{{"x-event", "e 1"}}}, invalidArgument, "KEY_INVALID")
}

func keyOfContent(e *env) {
	scope := func(_ context.Context, metadata func(string) string) (string, error) {
		if tenant := metadata("x-tenant"); tenant != "" {
			return tenant, nil
		}
		return "", protocol.ErrUnscoped
	}
	s := e.serve(setup{Config: protocol.Config{Key: protocol.KeyContent(time.Minute)}, scope: scope})
	of := func(tenant, in string) call { return call{in: in, metadata: []pair{{"x-tenant", tenant}}} }
	first, _ := e.twice(s, of("one", "book"))
	e.twice(s, of("one", "boot"))
	e.twice(s, of("two", "book"))
	moved := of("one", "book")
	moved.procedure = cancel
	e.twice(s, moved)
	own := of("one", "book")
	own.keys = []string{"on-purpose"}
	e.twice(s, own)
	e.same(first, e.call(s, of("one", "book")))
	e.refused(s, call{in: "book"}, permissionDenied, "SCOPE_MISSING")
}

func keyOfParam(e *env) {
	s := e.serve(setup{Config: protocol.Config{Key: protocol.KeyParam("request_id"), Required: true}})
	e.refused(s, call{in: "book"}, invalidArgument, "KEY_MISSING")
	e.twice(s, keyed("k"))
}
