package main

// foreignPackages are packages of other projects that documents name, which this program
// does not read.
var foreignPackages = map[string]bool{
	"redis":       true, // go-redis
	"pgx":         true,
	"pgxpool":     true, // pgx
	"pgconn":      true, // pgx
	"gin":         true,
	"echo":        true,
	"handlers":    true, // gorilla's
	"middleware":  true, // Echo's and chi's
	"fiber":       true,
	"fasthttp":    true,
	"idempotency": true, // Fiber's middleware
	"timeout":     true, // Fiber's middleware
	"tx":          true, // a transaction of pgx
}

// foreignNames are exported names in documents that belong to other projects, and words
// that only look like one.
var foreignNames = map[string]bool{
	"BeginTx": true, "QueryExecModeExec": true, // pgx
	"Raw":               true, // database/sql
	"SyncRepWaitForLSN": true, // PostgreSQL
	"Locker":            true, // Fiber's middleware
	"Makefile":          true, // a file

	// Fiber and fasthttp.
	"ErrorHandler": true, "SetBodyStreamWriter": true, "StreamRequestBody": true,

	// The options of go-redis.
	"ContextTimeoutEnabled": true, "MaxRetries": true, "ReadOnly": true, "ReadTimeout": true, "RouteByLatency": true,
	"RouteRandomly": true,
}

// foreignPaths are the first elements of paths in documents that are not of this project.
var foreignPaths = map[string]bool{
	"application": true, // media types
	"text":        true,
	"middleware":  true, // packages of Fiber
}
