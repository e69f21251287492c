module github.com/reprise-go/reprise/lab/otel/echo

go 1.26.0

require (
	github.com/labstack/echo/v4 v4.12.0
	github.com/reprise-go/reprise/adapters/echo v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/lab v0.0.0
	github.com/reprise-go/reprise/lab/otel v0.0.0
	go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho v0.54.0
	go.opentelemetry.io/otel/sdk v1.47.0
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang-jwt/jwt v3.2.2+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.9.1 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/labstack/gommon v0.4.2 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/client v0.0.0 // indirect
	github.com/reprise-go/reprise/otel v0.0.0 // indirect
	github.com/reprise-go/reprise/servers v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/postgres v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/echo => ../../../adapters/echo
	github.com/reprise-go/reprise/adapters/internal => ../../../adapters/internal
	github.com/reprise-go/reprise/client => ../../../client
	github.com/reprise-go/reprise/core => ../../../core
	github.com/reprise-go/reprise/lab => ../..
	github.com/reprise-go/reprise/lab/otel => ..
	github.com/reprise-go/reprise/otel => ../../../otel
	github.com/reprise-go/reprise/store/internal => ../../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../../servers

replace github.com/reprise-go/reprise/conformance => ../../../conformance
