module github.com/reprise-go/reprise/lab/nethttp/stacks

go 1.26.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/gorilla/handlers v1.5.2
	github.com/gorilla/mux v1.8.1
	github.com/reprise-go/reprise/adapters/nethttp v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/lab v0.0.0
	github.com/reprise-go/reprise/proxy v0.0.0
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.58.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/felixge/httpsnoop v1.0.4 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.9.1 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/conformance v0.0.0 // indirect
	github.com/reprise-go/reprise/servers v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/postgres v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel v1.33.0 // indirect
	go.opentelemetry.io/otel/metric v1.33.0 // indirect
	go.opentelemetry.io/otel/trace v1.33.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/internal => ../../../adapters/internal
	github.com/reprise-go/reprise/adapters/nethttp => ../../../adapters/nethttp
	github.com/reprise-go/reprise/conformance => ../../../conformance
	github.com/reprise-go/reprise/core => ../../../core
	github.com/reprise-go/reprise/lab => ../..
	github.com/reprise-go/reprise/proxy => ../../../proxy
	github.com/reprise-go/reprise/reprisetest => ../../../reprisetest
	github.com/reprise-go/reprise/store/internal => ../../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../../servers
