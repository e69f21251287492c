module github.com/reprise-go/reprise/adapters/grpc

go 1.25.0

require (
	github.com/reprise-go/reprise/core v0.0.0
	google.golang.org/grpc v1.63.2
	google.golang.org/protobuf v1.33.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	golang.org/x/net v0.21.0 // indirect
	golang.org/x/sys v0.17.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240227224415-6ceb2ff114de // indirect
)

replace github.com/reprise-go/reprise/core => ../../core

replace github.com/reprise-go/reprise/conformance => ../../conformance
