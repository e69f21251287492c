// Package guards has the variants with Reprise, and what the programs of Fiber share.
package guards

import (
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Of every variant with keys.
const (
	Header    = "Idempotency-Key"
	Retention = 30 * time.Minute // the default of Fiber's own middleware
)

// Body is the response of the handlers, and of the lab's test server.
var Body = []byte(`{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",` +
	`"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}`)

// New returns the guard of a variant: reprise-memory or reprise-redis.
func New(variant, redisAddr string) (*protocol.Guard, error) {
	var store reprise.Store
	var err error
	switch variant {
	case "reprise-memory":
		store, err = memstore.NewBounded(memstore.Bounds{Records: 10_000_000, Bytes: 4 << 30})
	case "reprise-redis":
		client := redis.NewClient(&redis.Options{Addr: redisAddr})
		store, err = repriseredis.New(client, repriseredis.Config{Prefix: "reprise:"})
	default:
		return nil, fmt.Errorf("no variant %q", variant)
	}
	if err != nil {
		return nil, err
	}
	return protocol.New(store, protocol.Config{Engine: reprise.Config{Retention: Retention}})
}

// Main runs a program with the flags of a variant and its Redis. start makes the app and
// returns how it serves a listener.
func Main(name string, start func(variant, redisAddr string) (serve func(net.Listener) error, err error)) {
	variant := flag.String("variant", "bare", "which middleware")
	redisAddr := flag.String("redis", "", "`address` of Redis, for the variants that need it")
	flag.Parse()
	if err := run(*variant, *redisAddr, start); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(variant, redisAddr string, start func(variant, redisAddr string) (func(net.Listener) error, error)) error {
	serve, err := start(variant, redisAddr)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the process
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	return serve(ln)
}
