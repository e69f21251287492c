module github.com/reprise-go/reprise/lab/echo

go 1.26.0

require (
	github.com/labstack/echo/v4 v4.12.0
	github.com/reprise-go/reprise/adapters/echo v0.0.0
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/lab v0.0.0
	go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho v0.54.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-sql-driver/mysql v1.9.3 // indirect
	github.com/golang-jwt/jwt v3.2.2+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.9.1 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/labstack/gommon v0.4.2 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/adapters/nethttp v0.0.0 // indirect
	github.com/reprise-go/reprise/servers v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/mysql v0.0.0 // indirect
	github.com/reprise-go/reprise/store/postgres v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	github.com/reprise-go/reprise/store/sqlite v0.0.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel v1.33.0 // indirect
	go.opentelemetry.io/otel/metric v1.33.0 // indirect
	go.opentelemetry.io/otel/trace v1.33.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/exp v0.0.0-20251023183803-a4bb9ffd2546 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	modernc.org/libc v1.67.6 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	modernc.org/sqlite v1.46.1 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/echo => ../../adapters/echo
	github.com/reprise-go/reprise/adapters/internal => ../../adapters/internal
	github.com/reprise-go/reprise/adapters/nethttp => ../../adapters/nethttp
	github.com/reprise-go/reprise/conformance => ../../conformance
	github.com/reprise-go/reprise/core => ../../core
	github.com/reprise-go/reprise/lab => ..
	github.com/reprise-go/reprise/reprisetest => ../../reprisetest
	github.com/reprise-go/reprise/store/internal => ../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../servers
