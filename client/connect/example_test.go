package repriseconnectclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	repriseclient "github.com/reprise-go/reprise/client"
	repriseconnectclient "github.com/reprise-go/reprise/client/connect"
)

// order stands for a procedure that knows the key, such as one with repriseconnect. Its
// first response gets lost.
func order() func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
	taken, calls := map[string]string{}, 0
	return func(_ context.Context, req *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		key := req.Header().Get("Idempotency-Key")
		again := taken[key] != ""
		if !again {
			taken[key] = fmt.Sprintf("order %d", len(taken)+1)
		}
		if calls++; calls == 1 {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("the response is lost"))
		}
		res := connect.NewResponse(wrapperspb.String(taken[key]))
		if again {
			res.Header().Set("Idempotent-Replayed", "true")
		}
		return res, nil
	}
}

func ExampleNewInterceptor() {
	const procedure = "/orders.v1.Orders/Create" // generated code has the constant and the clients
	server := httptest.NewServer(connect.NewUnaryHandler(procedure, order()))
	defer server.Close()

	interceptor, err := repriseconnectclient.NewInterceptor(repriseconnectclient.Config{})
	if err != nil {
		panic(err)
	}
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](server.Client(), server.URL+procedure,
		connect.WithInterceptors(interceptor))

	ctx := repriseclient.WithKey(context.Background(), "cart-4711") // of the operation; without it each call gets a new one
	for _, ctx := range []context.Context{ctx, context.Background()} {
		res, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("book")))
		if err != nil {
			panic(err)
		}
		fmt.Println(res.Msg.GetValue(), repriseconnectclient.Replayed(res.Header()))
	}
	// Output:
	// order 1 true
	// order 2 false
}
