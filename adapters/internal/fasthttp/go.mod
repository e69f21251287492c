module github.com/reprise-go/reprise/adapters/internal/fasthttp

go 1.25.0

require (
	github.com/reprise-go/reprise/core v0.0.0
	github.com/valyala/fasthttp v1.47.0
)

require (
	github.com/andybalholm/brotli v1.0.5 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/klauspost/compress v1.16.3 // indirect
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/valyala/bytebufferpool v1.0.0 // indirect
)

replace github.com/reprise-go/reprise/core => ../../../core

replace github.com/reprise-go/reprise/conformance => ../../../conformance
