module github.com/reprise-go/reprise/cmd/reprise

go 1.25.0

require (
	github.com/jackc/pgx/v5 v5.9.1
	github.com/redis/go-redis/v9 v9.20.0
	github.com/reprise-go/reprise/console v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/store/postgres v0.0.0
	github.com/reprise-go/reprise/store/redis v0.0.0
	github.com/rivo/uniseg v0.4.7
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	golang.org/x/term v0.43.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/sys v0.44.0 // indirect
	golang.org/x/text v0.29.0 // indirect
)

replace (
	github.com/reprise-go/reprise/console => ../../console
	github.com/reprise-go/reprise/core => ../../core
	github.com/reprise-go/reprise/store/postgres => ../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../store/redis
)

replace github.com/reprise-go/reprise/store/internal => ../../store/internal
