package reprisegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	reprisegrpc "github.com/reprise-go/reprise/adapters/grpc"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// orders stands for your service.
type orders struct {
	pb.UnimplementedTestServiceServer
	created int
}

func (o *orders) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	o.created++
	return &pb.SimpleResponse{Username: fmt.Sprintf("order %d", o.created)}, nil
}

func ExampleUnaryServerInterceptor() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	tenantOf := func(ctx context.Context) (string, error) { // in a service: the principal that an interceptor authenticated
		if tenant := metadata.ValueFromIncomingContext(ctx, "x-tenant"); len(tenant) == 1 {
			return tenant[0], nil
		}
		return "", errors.New("not authenticated")
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(reprisegrpc.UnaryServerInterceptor(guard, tenantOf)),
		grpc.ChainStreamInterceptor(reprisegrpc.StreamServerInterceptor(guard)),
	)
	pb.RegisterTestServiceServer(server, &orders{})
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // an example
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := pb.NewTestServiceClient(conn)
	for range 2 {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-tenant", "tenant-1", "idempotency-key", "7c1f")
		var header metadata.MD
		order, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&header))
		fmt.Println(order.GetUsername(), err, header.Get("idempotent-replayed"))
	}
	// Output:
	// order 1 <nil> []
	// order 1 <nil> [true]
}
