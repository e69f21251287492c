module github.com/reprise-go/reprise/tools/peers/fiberv3

go 1.26.0

require (
	github.com/gofiber/fiber/v3 v3.5.0
	github.com/gofiber/storage/redis/v3 v3.4.3
	github.com/reprise-go/reprise/adapters/fiber3 v0.0.0
	github.com/reprise-go/reprise/tools/peers v0.0.0
)

require (
	github.com/andybalholm/brotli v1.2.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/gofiber/schema v1.8.3 // indirect
	github.com/gofiber/utils/v2 v2.4.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0 // indirect
	github.com/reprise-go/reprise/core v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	github.com/tinylib/msgp v1.6.4 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasthttp v1.73.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/fiber => ../../../adapters/fiber
	github.com/reprise-go/reprise/adapters/fiber3 => ../../../adapters/fiber3
	github.com/reprise-go/reprise/adapters/internal => ../../../adapters/internal
	github.com/reprise-go/reprise/adapters/internal/fasthttp => ../../../adapters/internal/fasthttp
	github.com/reprise-go/reprise/adapters/nethttp => ../../../adapters/nethttp
	github.com/reprise-go/reprise/conformance => ../../../conformance
	github.com/reprise-go/reprise/core => ../../../core
	github.com/reprise-go/reprise/lab => ../../../lab
	github.com/reprise-go/reprise/lab/nethttp => ../../../lab/nethttp
	github.com/reprise-go/reprise/reprisetest => ../../../reprisetest
	github.com/reprise-go/reprise/store/internal => ../../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../../store/sqlite
	github.com/reprise-go/reprise/tools/peers => ..
)
