module github.com/reprise-go/reprise/examples

go 1.26.0

require (
	github.com/golang-jwt/jwt/v5 v5.3.0
	github.com/jackc/pgx/v5 v5.9.1
	github.com/prometheus/client_golang v1.20.5
	github.com/redis/go-redis/v9 v9.20.0
	github.com/reprise-go/reprise/adapters/nethttp v0.0.0
	github.com/reprise-go/reprise/client v0.0.0
	github.com/reprise-go/reprise/console v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/otel v0.0.0
	github.com/reprise-go/reprise/store/postgres v0.0.0
	github.com/reprise-go/reprise/store/redis v0.0.0
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.58.0
	go.opentelemetry.io/otel/exporters/prometheus v0.55.0
	go.opentelemetry.io/otel/exporters/stdout/stdouttrace v1.33.0
	go.opentelemetry.io/otel/sdk v1.33.0
	go.opentelemetry.io/otel/sdk/metric v1.33.0
)

require (
	github.com/andybalholm/brotli v1.0.5 // indirect
	github.com/bytedance/sonic v1.11.6 // indirect
	github.com/bytedance/sonic/loader v0.1.1 // indirect
	github.com/cloudwego/base64x v0.1.4 // indirect
	github.com/cloudwego/iasm v0.2.0 // indirect
	github.com/gabriel-vasile/mimetype v1.4.3 // indirect
	github.com/gin-contrib/sse v0.1.0 // indirect
	github.com/go-playground/locales v0.14.1 // indirect
	github.com/go-playground/universal-translator v0.18.1 // indirect
	github.com/go-playground/validator/v10 v10.20.0 // indirect
	github.com/goccy/go-json v0.10.2 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/labstack/gommon v0.4.2 // indirect
	github.com/leodido/go-urn v1.4.0 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-runewidth v0.0.14 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/pelletier/go-toml/v2 v2.2.2 // indirect
	github.com/philhofer/fwd v1.1.2 // indirect
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0 // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/savsgio/dictpool v0.0.0-20221023140959-7bf2e61cea94 // indirect
	github.com/savsgio/gotils v0.0.0-20230208104028-c358bd845dee // indirect
	github.com/tinylib/msgp v1.1.8 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/ugorji/go/codec v1.2.12 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasthttp v1.47.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/valyala/tcplisten v1.0.0 // indirect
	golang.org/x/arch v0.8.0 // indirect
	golang.org/x/crypto v0.47.0 // indirect
	golang.org/x/net v0.49.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240227224415-6ceb2ff114de // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/felixge/httpsnoop v1.0.4 // indirect
	github.com/gin-gonic/gin v1.10.0
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/gofiber/fiber/v2 v2.45.0
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
	github.com/labstack/echo/v4 v4.12.0
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-sqlite3 v1.14.32
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.1 // indirect
	github.com/prometheus/common v0.61.0 // indirect
	github.com/prometheus/procfs v0.15.1 // indirect
	github.com/reprise-go/reprise/adapters/echo v0.0.0
	github.com/reprise-go/reprise/adapters/fiber v0.0.0
	github.com/reprise-go/reprise/adapters/gin v0.0.0
	github.com/reprise-go/reprise/adapters/grpc v0.0.0
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/client/grpc v0.0.0
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/reprise-go/reprise/servers v0.0.0
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel v1.33.0 // indirect
	go.opentelemetry.io/otel/metric v1.33.0 // indirect
	go.opentelemetry.io/otel/trace v1.33.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/grpc v1.63.2
	google.golang.org/protobuf v1.36.9 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/internal => ../adapters/internal
	github.com/reprise-go/reprise/adapters/nethttp => ../adapters/nethttp
	github.com/reprise-go/reprise/client => ../client
	github.com/reprise-go/reprise/conformance => ../conformance
	github.com/reprise-go/reprise/console => ../console
	github.com/reprise-go/reprise/core => ../core
	github.com/reprise-go/reprise/lab => ../lab
	github.com/reprise-go/reprise/otel => ../otel
	github.com/reprise-go/reprise/store/internal => ../store/internal
	github.com/reprise-go/reprise/store/mysql => ../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../store/postgres
	github.com/reprise-go/reprise/store/redis => ../store/redis
)

replace github.com/reprise-go/reprise/servers => ../servers

replace github.com/reprise-go/reprise/adapters/echo => ../adapters/echo

replace github.com/reprise-go/reprise/adapters/fiber => ../adapters/fiber

replace github.com/reprise-go/reprise/adapters/internal/fasthttp => ../adapters/internal/fasthttp

replace github.com/reprise-go/reprise/adapters/gin => ../adapters/gin

replace github.com/reprise-go/reprise/adapters/grpc => ../adapters/grpc

replace github.com/reprise-go/reprise/client/grpc => ../client/grpc
