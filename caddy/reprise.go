// Package reprisecaddy is the Caddy module http.handlers.reprise: it runs each
// Idempotency-Key once, and forwards requests to the upstream that a configuration file
// of package proxy names. In a Caddyfile, use the directive in place of reverse_proxy,
// with a store and that file:
//
//	reprise redis://127.0.0.1:6379?prefix=orders: /etc/caddy/reprise.toml
//
// A reload of Caddy reads the file again. With the store "memory", each file has its own
// store, which outlives a reload. Services that use one database of PostgreSQL, or one
// prefix in Redis, share their keys: give each service its own.
//
//run:not run: it is a line of a Caddyfile
package reprisecaddy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func init() {
	caddy.RegisterModule(&Handler{})
	httpcaddyfile.RegisterHandlerDirective("reprise", parse)
	httpcaddyfile.RegisterDirectiveOrder("reprise", httpcaddyfile.Before, "reverse_proxy")
	caddy.OnExit(exit)
}

// Handler is the module. It is the last handler of its route.
type Handler struct {
	Config string `json:"config"` // the file with the upstream and the policies

	// Store is "memory", or the URL of a Redis server or a PostgreSQL database with the
	// schema. It may be a placeholder such as {env.REPRISE_STORE}.
	Store string `json:"store"`

	opened  string // the store, by its key in the pool
	handler *proxy.Handler

	mu      sync.Mutex
	running int           // requests
	idle    chan struct{} // closed by the last of them, after the handler has lingered
}

// CaddyModule implements caddy.Module.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.reprise", New: func() caddy.Module { return new(Handler) }}
}

// stores has the connections in use, by URL. They outlive a reload.
var stores = caddy.NewUsagePool()

type connection struct {
	store.Store

	close func()
}

// Destruct implements caddy.Destructor.
func (c connection) Destruct() error { c.close(); return nil }

const proofTimeout = 10 * time.Second // of a store when it is opened

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	config, err := proxy.Load(h.Config)
	if err != nil {
		return err
	}
	at := caddy.NewReplacer().ReplaceAll(h.Store, "")
	if h.opened = at; at == "memory" {
		h.opened += " " + h.Config // each file has its own store
	}
	opened, _, err := stores.LoadOrNew(h.opened, func() (caddy.Destructor, error) { return open(ctx, at, ctx.Slogger()) })
	if err != nil {
		return err
	}
	h.handler, err = proxy.New(opened.(connection).Store, config, proxy.Options{Engine: reprise.Config{Log: ctx.Slogger(), MaxRun: time.Hour}})
	if err != nil {
		_, _ = stores.Delete(h.opened)
	}
	return err
}

// exitTimeout bounds the background work of a process that exits.
const exitTimeout = 10 * time.Second

// linger is how long a replaced handler stays open. A request of the former configuration
// may still be in an earlier handler, such as forward_auth.
var linger = time.Minute

var (
	replaced sync.WaitGroup        // the goroutines of the replaced handlers that are open
	exiting  = make(chan struct{}) // closed when the process exits
)

// Cleanup implements caddy.CleanerUpper. Caddy replaces a configuration while requests
// run under it, so the handler stays open until linger has passed and none of them is in
// it. A process that exits waits for requests, then for Cleanup, and then for exit.
func (h *Handler) Cleanup() error {
	if h.handler == nil {
		return nil
	}
	if caddy.Exiting() {
		ctx, cancel := context.WithTimeout(context.Background(), exitTimeout)
		defer cancel()
		return h.close(ctx)
	}
	lingered := time.After(linger)
	replaced.Go(func() {
		select {
		case <-lingered:
		case <-exiting:
		}
		idle := make(chan struct{})
		h.mu.Lock()
		h.idle = idle
		h.mu.Unlock()
		h.count(0)
		<-idle
		_ = h.close(context.Background()) // its background work is bounded
	})
	return nil
}

// exit waits until the replaced handlers are closed, and not until they have lingered:
// Caddy has waited for their requests. It ends with ctx or after exitTimeout.
func exit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	close(exiting)
	closed := make(chan struct{})
	go func() { replaced.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

func (h *Handler) close(ctx context.Context) error {
	defer func() { _, _ = stores.Delete(h.opened) }()
	return h.handler.Close(ctx)
}

// count counts n more requests that run.
func (h *Handler) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running += n; h.running == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

var errStore = errors.New("reprise: the store must be memory, redis[s]://[user:password@]host[:port][/db]?prefix=NAME: or postgres://user@host:port/database?parameters")

// open opens a store and runs each of its operations once. Errors do not quote the URL.
func open(ctx context.Context, at string, log *slog.Logger) (connection, error) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	switch scheme, _, _ := strings.Cut(at, "://"); scheme {
	case "memory":
		return connection{memstore.New(), func() {}}, nil
	case "redis", "rediss":
		options, prefix, err := parseRedis(at)
		if err != nil {
			break
		}
		options.ContextTimeoutEnabled = true
		options.PipelinePoolSize = -1 // one pool, whose state says whether a call was busy
		client := redis.NewClient(options)
		st, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: prefix, Logger: log})
		if err != nil {
			return connection{}, errors.Join(err, client.Close())
		}
		return connection{st, func() { _, _ = st.Close(), client.Close() }}, nil
	case "postgres", "postgresql":
		config, err := pgxpool.ParseConfig(at)
		if err != nil {
			break
		}
		reprisepg.ObserveNotices(config.ConnConfig)
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return connection{}, errStore
		}
		st, err := reprisepg.Open(ctx, pool, reprisepg.Config{Logger: log})
		if err != nil {
			pool.Close()
			return connection{}, err
		}
		return connection{st, pool.Close}, nil
	}
	return connection{}, errStore
}

// parseRedis reads the URL of a Redis server, and the prefix of its records from the
// query.
func parseRedis(text string) (options *redis.Options, prefix string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, "", err
	}
	query := u.Query()
	prefix = query.Get("prefix")
	query.Del("prefix")
	u.RawQuery = query.Encode()
	options, err = redis.ParseURL(u.String())
	return options, prefix, err
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h.count(1)
	defer h.count(-1)
	h.handler.ServeHTTP(w, r)
	return nil
}

// parse reads the directive: reprise [matcher] STORE FILE.
func parse(d httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h := new(Handler)
	if d.Next(); !d.Args(&h.Store, &h.Config) || d.NextArg() {
		return nil, d.ArgErr()
	}
	return h, nil
}
