module github.com/reprise-go/reprise/lab/sqlite

go 1.26.0

require (
	github.com/mattn/go-sqlite3 v1.14.32
	github.com/pressly/goose/v3 v3.18.0
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/lab v0.0.0
	github.com/reprise-go/reprise/store/sqlite v0.0.0
	modernc.org/sqlite v1.46.1
)

require (
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/sethvargo/go-retry v0.2.4 // indirect
	go.uber.org/multierr v1.11.0 // indirect
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.9.1 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/reprise-go/reprise/servers v0.0.0
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/postgres v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/exp v0.0.0-20251023183803-a4bb9ffd2546 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	modernc.org/libc v1.67.6 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/internal => ../../adapters/internal
	github.com/reprise-go/reprise/adapters/nethttp => ../../adapters/nethttp
	github.com/reprise-go/reprise/client => ../../client
	github.com/reprise-go/reprise/conformance => ../../conformance
	github.com/reprise-go/reprise/core => ../../core
	github.com/reprise-go/reprise/lab => ../../lab
	github.com/reprise-go/reprise/reprisetest => ../../reprisetest
	github.com/reprise-go/reprise/store/internal => ../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../servers
