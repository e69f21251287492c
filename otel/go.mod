module github.com/reprise-go/reprise/otel

go 1.25.0

require (
	github.com/reprise-go/reprise/client v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	go.opentelemetry.io/otel v1.33.0
	go.opentelemetry.io/otel/metric v1.33.0
	go.opentelemetry.io/otel/trace v1.33.0
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
)

replace (
	github.com/reprise-go/reprise/client => ../client
	github.com/reprise-go/reprise/core => ../core
)
