package edges_test

import (
	"strings"

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
		e.refused(s, c, invalidArgument, "KEY_MISSING")
	}
	for _, c := range []call{{procedure: read}, {procedure: check}} {
		if a := e.call(s, c); a.code != 0 {
			e.Errorf("%v: %+v", c, a)
		}
	}
	if a := s.stream(e.Context(), call{}); a.code != 0 || a.body[0] != 3 {
		e.Errorf("a stream: %+v", a)
	}
	lists := e.serve(setup{Config: protocol.Config{Key: protocol.KeyField("/methods/name")}})
	if a := e.call(lists, call{entry: &entry{Name: "a"}}); a.code != 0 {
		e.Errorf("a list that is empty on the way to the key: %+v", a)
	}
}

func keyFieldInvalid(e *env) {
	s := e.serve(setup{Config: inField(protocol.Config{})})
	if a := e.refused(s, entryWith("a secret", "a"), invalidArgument, "KEY_INVALID"); strings.Contains(a.message, "secret") {
		e.Errorf("the refusal has the key: %s", a.message)
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
