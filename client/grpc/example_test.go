package reprisegrpcclient_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	repriseclient "github.com/reprise-go/reprise/client"
	reprisegrpcclient "github.com/reprise-go/reprise/client/grpc"
)

// orders stands for a service that knows the key, such as one with reprisegrpc. Its first
// response gets lost.
type orders struct {
	pb.UnimplementedTestServiceServer
	taken map[string]string
	calls int
}

func (o *orders) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	key := metadata.ValueFromIncomingContext(ctx, "idempotency-key")[0]
	if o.taken[key] != "" {
		_ = grpc.SetHeader(ctx, metadata.Pairs("idempotent-replayed", "true"))
	} else {
		o.taken[key] = fmt.Sprintf("order %d", len(o.taken)+1)
	}
	if o.calls++; o.calls == 1 {
		return nil, status.Error(codes.Unavailable, "the response is lost")
	}
	return &pb.SimpleResponse{Username: o.taken[key]}, nil
}

func ExampleDialOptions() {
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, &orders{taken: map[string]string{}})
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // an example
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	options, err := reprisegrpcclient.DialOptions(reprisegrpcclient.Config{})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient(listener.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := pb.NewTestServiceClient(conn)

	ctx := repriseclient.WithKey(context.Background(), "cart-4711") // of the operation; without it each call gets a new one
	var header metadata.MD
	order, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&header))
	fmt.Println(order.GetUsername(), err, reprisegrpcclient.Replayed(header))

	another, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{}, grpc.Header(&header))
	fmt.Println(another.GetUsername(), err, reprisegrpcclient.Replayed(header))
	// Output:
	// order 1 <nil> true
	// order 2 <nil> false
}
