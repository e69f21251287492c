module github.com/reprise-go/reprise/store/redis

go 1.25.0

require (
	github.com/redis/go-redis/v9 v9.20.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/store/internal v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace github.com/reprise-go/reprise/core => ../../core

replace github.com/reprise-go/reprise/store/internal => ../internal
