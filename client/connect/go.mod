module github.com/reprise-go/reprise/client/connect

go 1.25.0

require (
	connectrpc.com/connect v1.19.2
	github.com/reprise-go/reprise/client v0.0.0
	google.golang.org/protobuf v1.36.9
)

require github.com/cenkalti/backoff/v5 v5.0.3 // indirect

replace github.com/reprise-go/reprise/client => ..
