module github.com/reprise-go/reprise/adapters/connect

go 1.25.0

require (
	connectrpc.com/connect v1.19.2
	github.com/reprise-go/reprise/core v0.0.0
	google.golang.org/protobuf v1.36.9
)

require github.com/dunglas/httpsfv v1.1.2 // indirect

replace github.com/reprise-go/reprise/core => ../../core

replace github.com/reprise-go/reprise/conformance => ../../conformance
