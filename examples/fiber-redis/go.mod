module github.com/reprise-go/reprise/examples/fiber-redis

go 1.26.0

require (
	github.com/gofiber/fiber/v2 v2.45.0
	github.com/redis/go-redis/v9 v9.20.0
	github.com/reprise-go/reprise/adapters/fiber v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/store/redis v0.0.0
)

require (
	github.com/andybalholm/brotli v1.1.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/philhofer/fwd v1.1.2 // indirect
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0 // indirect
	github.com/reprise-go/reprise/servers v0.0.0
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/savsgio/dictpool v0.0.0-20221023140959-7bf2e61cea94 // indirect
	github.com/savsgio/gotils v0.0.0-20230208104028-c358bd845dee // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	github.com/tinylib/msgp v1.1.8 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasthttp v1.47.0 // indirect
	github.com/valyala/tcplisten v1.0.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/fiber => ../../adapters/fiber
	github.com/reprise-go/reprise/adapters/internal => ../../adapters/internal
	github.com/reprise-go/reprise/adapters/internal/fasthttp => ../../adapters/internal/fasthttp
	github.com/reprise-go/reprise/core => ../../core
	github.com/reprise-go/reprise/lab => ../../lab
	github.com/reprise-go/reprise/store/internal => ../../store/internal
	github.com/reprise-go/reprise/store/redis => ../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../servers

replace github.com/reprise-go/reprise/conformance => ../../conformance
