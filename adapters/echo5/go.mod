module github.com/reprise-go/reprise/adapters/echo5

go 1.25.0

require (
	github.com/labstack/echo/v5 v5.0.0
	github.com/reprise-go/reprise/adapters/internal v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/reprise-go/reprise/conformance v0.0.0
)

replace github.com/reprise-go/reprise/adapters/internal => ../internal

replace github.com/reprise-go/reprise/core => ../../core

replace github.com/reprise-go/reprise/conformance => ../../conformance
