// Grpc is a gRPC service whose responses get lost, and a client that retries with one
// key: every order is taken once. The generated code of a test service of gRPC stands in
// for that of your service.
//
//	go run ./examples/grpc
//
//run:prints "3 orders were taken"
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	reprisegrpc "github.com/reprise-go/reprise/adapters/grpc"
	repriseclient "github.com/reprise-go/reprise/client"
	reprisegrpcclient "github.com/reprise-go/reprise/client/grpc"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

type orders struct {
	pb.UnimplementedTestServiceServer
	taken atomic.Int32
}

func (o *orders) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Username: fmt.Sprintf("order %d", o.taken.Add(1))}, nil
}

// losing loses the response of every second call, as a network does.
func losing() grpc.UnaryServerInterceptor {
	var calls atomic.Int32
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if calls.Add(1)%2 == 1 {
			return nil, status.Error(codes.Unavailable, "the connection broke")
		}
		return resp, err
	}
}

// run takes n orders, and returns the clients' responses and how many orders were taken.
func run(ctx context.Context, n int) (answers []string, taken int32, err error) {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		return nil, 0, err
	}
	defer guard.Close(context.WithoutCancel(ctx))
	service := new(orders)
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(losing(), reprisegrpc.UnaryServerInterceptor(guard, reprisegrpc.Unscoped)),
		grpc.ChainStreamInterceptor(reprisegrpc.StreamServerInterceptor(guard)), //nolint:contextcheck // a stream has its own
	)
	pb.RegisterTestServiceServer(server, service)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	go func() { _ = server.Serve(listener) }() // until Stop
	defer server.Stop()

	options, err := reprisegrpcclient.DialOptions(reprisegrpcclient.Config{})
	if err != nil {
		return nil, 0, err
	}
	conn, err := grpc.NewClient(listener.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	client := pb.NewTestServiceClient(conn)
	for i := range n {
		key := fmt.Sprintf("cart-%d", i) // of the business: the same for every attempt, and after a restart
		var header metadata.MD
		order, err := client.UnaryCall(repriseclient.WithKey(ctx, key), &pb.SimpleRequest{}, grpc.Header(&header))
		if err != nil {
			return nil, 0, err
		}
		answers = append(answers, fmt.Sprintf("%s: %s (replayed: %v)", key, order.GetUsername(), reprisegrpcclient.Replayed(header)))
	}
	return answers, service.taken.Load(), nil
}

func main() {
	answers, taken, err := run(context.Background(), 3)
	if err != nil {
		slog.Error("orders failed", slog.Any("error", err))
		os.Exit(1)
	}
	for _, answer := range answers {
		fmt.Println(answer)
	}
	fmt.Println(taken, "orders were taken")
}
