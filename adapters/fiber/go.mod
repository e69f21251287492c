module github.com/reprise-go/reprise/adapters/fiber

go 1.25.0

require (
	github.com/gofiber/fiber/v2 v2.45.0
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/valyala/fasthttp v1.47.0
)

require (
	github.com/andybalholm/brotli v1.0.5 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/google/uuid v1.3.0 // indirect
	github.com/klauspost/compress v1.16.3 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.18 // indirect
	github.com/mattn/go-runewidth v0.0.14 // indirect
	github.com/philhofer/fwd v1.1.2 // indirect
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/savsgio/dictpool v0.0.0-20221023140959-7bf2e61cea94 // indirect
	github.com/savsgio/gotils v0.0.0-20230208104028-c358bd845dee // indirect
	github.com/tinylib/msgp v1.1.8 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/tcplisten v1.0.0 // indirect
	golang.org/x/sys v0.8.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/internal/fasthttp => ../internal/fasthttp
	github.com/reprise-go/reprise/core => ../../core
)

replace github.com/reprise-go/reprise/conformance => ../../conformance
