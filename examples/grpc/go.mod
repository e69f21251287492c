module github.com/reprise-go/reprise/examples/grpc

go 1.26.0

require (
	github.com/reprise-go/reprise/adapters/grpc v0.0.0
	github.com/reprise-go/reprise/client v0.0.0
	github.com/reprise-go/reprise/client/grpc v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	google.golang.org/grpc v1.63.2
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240227224415-6ceb2ff114de // indirect
	google.golang.org/protobuf v1.36.9 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/grpc => ../../adapters/grpc
	github.com/reprise-go/reprise/client => ../../client
	github.com/reprise-go/reprise/client/grpc => ../../client/grpc
	github.com/reprise-go/reprise/core => ../../core
)

replace github.com/reprise-go/reprise/conformance => ../../conformance
