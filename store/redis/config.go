package repriseredis

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/prefix"
)

const (
	maxReplicas       = 64
	defaultAckTimeout = time.Second
	minAckTimeout     = 10 * time.Millisecond
	maxAckTimeout     = 10 * time.Second
)

// Config configures a [Store]. Prefix is required, and every other field has a default.
type Config struct {
	// Prefix starts every key and channel, and names the service whose records these are,
	// such as "orders:". Empty is an error. Two services with one prefix would answer for
	// each other, and all processes of one service need the same. It has 1 to 128 visible
	// characters of US-ASCII, and no braces, because they would keep all records of a
	// cluster on one node. A prefix of up to 10 bytes costs no memory.
	Prefix string

	// Durability is the failure that a write must survive before it counts. The default is
	// [Async].
	Durability Durability

	// AckTimeout bounds the wait for the confirmation that Durability asks for. The default
	// is 1 s; 10 ms to 10 s, and shorter than the client's ReadTimeout. A context with an
	// earlier deadline shortens it.
	AckTimeout time.Duration

	// NoCombining sends every call alone. The default, false, sends concurrent calls
	// together, as a pipeline of the client, when more than four are on their way to a
	// server.
	NoCombining bool

	// Logger receives the warnings of [Open]; nil means [slog.Default].
	Logger *slog.Logger
}

// Durability is the failure that a claim, renewal or completion must survive before it
// counts. The zero value is [Async]. The package comment has the guarantees.
type Durability struct {
	level    level
	replicas int
}

// level is the kind of a [Durability], by the function that makes it.
type level string

const (
	async   level = ""
	acked   level = "Acked"
	fsynced level = "Fsynced"
)

// Async counts a write once the primary has it in memory, as Redis does by default: a
// failover or a crash may lose the last writes. It is the zero value.
func Async() Durability { return Durability{} }

// Acked counts a write once the primary and at least n of its replicas (1 to 64) have it
// in memory. If fewer replicas confirm it within [Config].AckTimeout, the error is
// [store.ErrNotReplicated]. A failover to a replica that confirmed the write keeps it; a
// failover to another replica can still lose it, so ask for all replicas that may be
// promoted.
func Acked(n int) Durability { return Durability{level: acked, replicas: n} }

// Fsynced counts a write once the primary and at least n of its replicas (0 to 64) have
// it on disk. It needs Redis 7.2 or newer with appendonly yes. Without appendfsync
// always, a write waits for a second or two.
func Fsynced(n int) Durability { return Durability{level: fsynced, replicas: n} }

// String returns d as the call that makes it, such as "Acked(1)".
func (d Durability) String() string {
	if d.level == async {
		return "Async"
	}
	return fmt.Sprintf("%s(%d)", d.level, d.replicas)
}

// command returns the command that waits for the confirmation that d asks for: at most
// for timeout, and for less than is left of ctx, so that the caller still learns that the
// write was not confirmed.
func (d Durability) command(ctx context.Context, timeout time.Duration) *redis.Cmd {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)*3/4)
	}
	ms := max(timeout, time.Millisecond).Milliseconds() // zero would wait for ever
	if d.level == fsynced {
		return redis.NewCmd(ctx, "waitaof", 1, d.replicas, ms)
	}
	return redis.NewCmd(ctx, "wait", d.replicas, ms)
}

// met returns nil when the answer to command confirms the write, and
// [store.ErrNotReplicated] otherwise, also when the server refused to wait: the write has
// happened and has to be undone.
func (d Durability) met(wait *redis.Cmd) error {
	answer, err := wait.Result()
	if err != nil {
		return fail(store.ErrNotReplicated, err)
	}
	local, replicas := int64(1), int64(0)
	switch answer := answer.(type) {
	case int64:
		replicas = answer
	case []any: // WAITAOF: on disk at the primary, and at how many replicas
		if len(answer) == 2 {
			local, _ = answer[0].(int64)
			replicas, _ = answer[1].(int64)
		}
	}
	switch {
	case local < 1:
		return fmt.Errorf("%w: redis: the write was not on the disk of the primary in time", store.ErrNotReplicated)
	case replicas < int64(d.replicas):
		return fmt.Errorf("%w: redis: %d of %d replicas confirmed the write in time", store.ErrNotReplicated, replicas, d.replicas)
	}
	return nil
}

// validate reports the first field that is out of its range, as [store.ErrInvalid], or
// the first option of the client that breaks a guarantee, as [store.ErrMisconfigured].
func (c Config) validate(o options) error {
	if err := prefix.Check(c.Prefix, "orders:"); err != nil {
		return invalid("%v", err)
	}
	level, replicas := c.Durability.level, c.Durability.replicas
	switch {
	case replicas < 0 || replicas > maxReplicas || replicas == 0 && level == acked:
		return invalid("Config.Durability is %v, want 1 to %d replicas for Acked and 0 to %[2]d for Fsynced", c.Durability, maxReplicas)
	case c.AckTimeout < minAckTimeout || c.AckTimeout > maxAckTimeout:
		return invalid("Config.AckTimeout is %v, want %v to %v", c.AckTimeout, minAckTimeout, maxAckTimeout)
	case o.replicaReads:
		return misconfigured("the client reads from replicas, which lag behind the primary; switch off ReadOnly, RouteByLatency and RouteRandomly")
	case o.readTimeout <= 0 && !o.ctxTimeouts:
		return misconfigured("the client has no ReadTimeout and ignores context deadlines, so a server that hangs would block every request; set ReadTimeout or ContextTimeoutEnabled")
	case level != async && o.readTimeout > 0 && c.AckTimeout >= o.readTimeout:
		return misconfigured("Config.AckTimeout is %v and the client's ReadTimeout %v; make AckTimeout the shorter one", c.AckTimeout, o.readTimeout)
	}
	return nil
}

// options are the client by its type, and its options that matter to the store.
type options struct {
	single       *redis.Client        // the client, or nil
	cluster      *redis.ClusterClient // the client, or nil
	readTimeout  time.Duration        // negative: none
	ctxTimeouts  bool
	replicaReads bool
}

// optionsOf returns the options of client, or an error for a client of a type that the
// store does not support.
func optionsOf(client redis.UniversalClient) (options, error) {
	switch client := client.(type) {
	case nil:
	case *redis.Client:
		if client != nil {
			o := client.Options()
			return options{single: client, readTimeout: o.ReadTimeout, ctxTimeouts: o.ContextTimeoutEnabled}, nil
		}
	case *redis.ClusterClient:
		if client != nil {
			o := client.Options()
			return options{
				cluster: client, readTimeout: o.ReadTimeout, ctxTimeouts: o.ContextTimeoutEnabled,
				replicaReads: o.ReadOnly || o.RouteByLatency || o.RouteRandomly,
			}, nil
		}
	case *redis.Ring:
		return options{}, misconfigured("a redis.Ring moves keys to other servers while one is down; use a single server, Sentinel or Cluster")
	default:
		return options{}, misconfigured("the client is a %T; want *redis.Client (also from NewFailoverClient) or *redis.ClusterClient", client)
	}
	return options{}, invalid("the client is nil")
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: redis store: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}

func misconfigured(format string, args ...any) error {
	return fmt.Errorf("%w: redis store: %s", store.ErrMisconfigured, fmt.Sprintf(format, args...))
}
