module github.com/reprise-go/reprise/adapters/internal

go 1.25.0

require github.com/reprise-go/reprise/core v0.0.0

require github.com/dunglas/httpsfv v1.1.2 // indirect

replace github.com/reprise-go/reprise/core => ../../core

replace github.com/reprise-go/reprise/conformance => ../../conformance
