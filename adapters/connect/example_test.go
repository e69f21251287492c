package repriseconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	repriseconnect "github.com/reprise-go/reprise/adapters/connect"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func ExampleNewInterceptor() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	tenantOf := func(_ context.Context, req connect.AnyRequest) (string, error) { // in a service: the authenticated principal
		if tenant := req.Header().Get("X-Tenant"); tenant != "" {
			return tenant, nil
		}
		return "", errors.New("not authenticated")
	}
	created := 0
	create := func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		created++
		return connect.NewResponse(wrapperspb.String(fmt.Sprintf("order %d", created))), nil
	}
	const procedure = "/orders.v1.Orders/Create" // generated code has the constant and the clients
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandler(procedure, create,
		connect.WithInterceptors(repriseconnect.NewInterceptor(guard, tenantOf))))
	server := httptest.NewServer(mux)
	defer server.Close()

	// The retry of a call may come through another of the protocols.
	for _, protocol := range []connect.ClientOption{connect.WithClientOptions(), connect.WithProtoJSON(), connect.WithGRPCWeb()} {
		client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](server.Client(), server.URL+procedure, protocol)
		req := connect.NewRequest(wrapperspb.String("book"))
		req.Header().Set("X-Tenant", "tenant-1")
		req.Header().Set("Idempotency-Key", "7c1f")
		res, err := client.CallUnary(context.Background(), req)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s replayed:%q\n", res.Msg.GetValue(), res.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// order 1 replayed:""
	// order 1 replayed:"true"
	// order 1 replayed:"true"
}
