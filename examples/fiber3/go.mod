module github.com/reprise-go/reprise/examples/fiber3

go 1.26.0

require (
	github.com/go-sql-driver/mysql v1.9.3
	github.com/gofiber/fiber/v3 v3.0.0
	github.com/reprise-go/reprise/adapters/fiber3 v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/store/mysql v0.0.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/andybalholm/brotli v1.2.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/gofiber/schema v1.6.0 // indirect
	github.com/gofiber/utils/v2 v2.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.18.3 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/tinylib/msgp v1.6.3 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasthttp v1.69.0 // indirect
	golang.org/x/crypto v0.47.0 // indirect
	golang.org/x/net v0.49.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
	golang.org/x/text v0.33.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/fiber3 => ../../adapters/fiber3
	github.com/reprise-go/reprise/adapters/internal/fasthttp => ../../adapters/internal/fasthttp
	github.com/reprise-go/reprise/core => ../../core
)

replace github.com/reprise-go/reprise/conformance => ../../conformance

replace github.com/reprise-go/reprise/store/mysql => ../../store/mysql

replace github.com/reprise-go/reprise/servers => ../../servers

replace github.com/reprise-go/reprise/store/internal => ../../store/internal
