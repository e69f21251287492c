module github.com/reprise-go/reprise/reprisetest

go 1.25.0

require (
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
)

require github.com/dunglas/httpsfv v1.1.2 // indirect

replace (
	github.com/reprise-go/reprise/conformance => ../conformance
	github.com/reprise-go/reprise/core => ../core
)
