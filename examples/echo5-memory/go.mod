module github.com/reprise-go/reprise/examples/echo5-memory

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.0.0
	github.com/reprise-go/reprise/adapters/echo5 v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/echo5 => ../../adapters/echo5
	github.com/reprise-go/reprise/adapters/internal => ../../adapters/internal
	github.com/reprise-go/reprise/core => ../../core
)

replace github.com/reprise-go/reprise/conformance => ../../conformance
