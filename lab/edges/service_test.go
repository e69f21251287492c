package edges_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The service of the suite. Its requests are JSON objects, which have maps and thus more
// than one encoding, and its responses bytes. Text answers with a text, which cannot be
// encoded if it is not UTF-8. Register takes a message of another type.
const (
	orders = "reprise.lab.v1.Orders"
	create = "/" + orders + "/Create"
	cancel = "/" + orders + "/Cancel"
	read   = "/" + orders + "/Read" // declared to have no side effects
	text   = "/" + orders + "/Text"
	watch  = "/" + orders + "/Watch" // a stream of the server
	list   = "/" + orders + "/List"  // one that is declared to have no side effects
	check  = "/grpc.health.v1.Health/Check"

	register = "/" + orders + "/Register" // takes a message that has fields for a key
)

type (
	request  = structpb.Struct
	entry    = apipb.Api // of Register: it has a string, a message with one, a list and an enum
	response = wrapperspb.BytesValue
)

// The descriptor of the service, as generated code registers it.
func init() {
	method := func(name string) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".google.protobuf.Struct"), OutputType: new(".google.protobuf.BytesValue"),
		}
	}
	safe, stream := method("Read"), method("List")
	safe.Options = &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()}
	stream.Options, stream.ServerStreaming = safe.Options, new(true)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("reprise/lab/v1/orders.proto"), Package: new("reprise.lab.v1"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/struct.proto", "google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new("Orders"), Method: []*descriptorpb.MethodDescriptorProto{method("Create"), method("Cancel"), safe, stream},
		}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
}

// outcome is the result of a handler, independent of a library.
type outcome struct {
	body            []byte
	text            string // of Text
	code            uint32
	message         string
	details         []proto.Message
	err             error // returned as it is
	header, trailer []pair
	early           bool // the header is set by SendHeader, or in the context of the call
}

// pair is one line of metadata. A value whose name ends in -bin is raw.
type pair struct{ name, value string }

type handler func(ctx context.Context, in *request) outcome

// service is one server with its guard, and the client that a target calls it with.
type service struct {
	runs    atomic.Int32
	outer   atomic.Pointer[context.Context] // of the last call, before the interceptor
	handler handler
	guard   *protocol.Guard
	client
}

func (s *service) run(ctx context.Context, in *request) outcome {
	n := s.runs.Add(1)
	if s.handler == nil {
		return outcome{body: []byte{byte(n)}}
	}
	return s.handler(ctx, in)
}

// call is a client's call.
type call struct {
	procedure string   // create if empty
	entry     *entry   // makes it a call of register
	keys      []string // as they are written
	in        string   // the item that is ordered
	metadata  []pair
}

// keyed returns a call of Create with a key.
func keyed(key string) call { return call{keys: []string{key}} }

// message returns the request.
func (c call) message() proto.Message {
	if c.entry != nil {
		return c.entry
	}
	return c.order()
}

func (c call) order() *request {
	in, err := structpb.NewStruct(map[string]any{"item": c.in, "count": 1, "a": true, "b": nil, "c": "☃", "d": []any{1, 2}})
	if err != nil {
		panic(err)
	}
	return in
}

// lines returns the metadata of the request.
func (c call) lines() []pair {
	lines := c.metadata
	for _, key := range c.keys {
		lines = append(lines, pair{"idempotency-key", key})
	}
	return lines
}

func (c call) path() string {
	switch {
	case c.procedure != "":
		return c.procedure
	case c.entry != nil:
		return register
	default:
		return create
	}
}

// answer is a client's view of a result. The client of Connect does not tell the header
// of an error from its trailer, so both have all of it.
type answer struct {
	body            []byte
	code            uint32
	message         string
	details         []string
	header, trailer map[string][]string
	err             error // as the client returned it
}

// get returns the values of a name, from the header or from the trailer.
func (a answer) get(name string) string {
	if values, ok := a.header[name]; ok {
		return strings.Join(values, ",")
	}
	return strings.Join(a.trailer[name], ",")
}

func (a answer) replayed() bool { return a.get("idempotent-replayed") == "true" }

// client calls a service.
type client interface {
	call(ctx context.Context, c call) answer
	stream(ctx context.Context, c call) answer // of Watch or List; the body has the number of messages
}

// target is a client and a server that a case runs with.
type target struct {
	name  string
	serve func(t *testing.T, s *service, scope scopeOf) (addr string)
	dial  func(t *testing.T, addr string) client
}

// scopeOf names the principal of a call by its metadata.
type scopeOf func(ctx context.Context, metadata func(string) string) (string, error)

// unscoped is the scope function of most cases.
func unscoped(context.Context, func(string) string) (string, error) { return "", protocol.ErrUnscoped }

// env is the environment of a case.
type env struct {
	*testing.T

	target target
}

// setup is the part of its service that a case may change.
type setup struct {
	protocol.Config

	engine  reprise.Config
	store   store.Store
	scope   scopeOf
	handler handler
}

func (e *env) serve(with setup) *service {
	e.Helper()
	if with.store == nil {
		with.store = memstore.New()
	}
	with.engine.Log = slog.New(slog.DiscardHandler)
	if with.scope == nil {
		with.scope = unscoped
	}
	engine, err := reprise.New(with.store, with.engine)
	labtest.Must(e, err)
	s := &service{handler: with.handler}
	if s.guard, err = protocol.Over(engine, with.Config); err != nil {
		e.Fatal(err)
	}
	s.client = e.target.dial(e.T, e.target.serve(e.T, s, with.scope))
	e.Cleanup(func() { _ = engine.Close(context.WithoutCancel(e.Context())) })
	return s
}

// call makes a call that has to be answered while the test lasts.
func (e *env) call(s *service, c call) answer {
	e.Helper()
	return s.call(e.Context(), c)
}

// wantRuns fails unless the service ran n times.
func (e *env) wantRuns(s *service, n int32) {
	e.Helper()
	if runs := s.runs.Load(); runs != n {
		e.Errorf("%d runs, want %d", runs, n)
	}
}
