package serve

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

const defaultRetention = 24 * time.Hour // of the engine

// Options are the flags of the command testserver.
type Options struct {
	Adapter     string // its name
	Store       string // one of Stores
	Addr        string // to listen on
	Backend     StoreOptions
	Engine      reprise.Config
	Guard       protocol.Config
	PerEndpoint bool // a guard per method and escaped path
	Outer       bool // a layer outside of the middleware
	OuterBody   adaptertest.OuterBody
	Inner       adaptertest.InnerGuard
	Purge       time.Duration // how often to purge; 0: never. Ignored by stores whose server deletes expired records
}

// ParseOptions reads the flags of the test server of an adapter, and refuses the first
// that is unknown or has an invalid value. The flag -adapter may name one of the others
// as well. The flag -h answers [flag.ErrHelp] after it wrote the list of flags.
func ParseOptions(adapter string, args []string, help io.Writer, others ...string) (Options, error) {
	o := Options{Adapter: adapter}
	var (
		waiters int
		budget  time.Duration
		content bool // keys are the content of requests
	)
	f := flag.NewFlagSet("testserver", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error says it once
	f.Usage = func() {}

	enum(f, &o.Adapter, "adapter", adapter, themselves(append(others, adapter))) // the programs of all frameworks have the same flags
	enum(f, &o.Store, "store", "memory", themselves(Stores()))
	f.StringVar(&o.Addr, "addr", "127.0.0.1:0", "`address` to listen on")

	f.StringVar(&o.Backend.RedisURL, "redis-url", "", "`URL` of Redis, for -store redis")
	f.StringVar(&o.Backend.PostgresURL, "postgres-url", "", "`URL` of PostgreSQL, for -store postgres and postgres-tx, and for effects with every store but SQLite and MySQL")
	f.StringVar(&o.Backend.MySQLURL, "mysql-url", "", "`URL` of MariaDB or MySQL, for -store mysql and mysql-tx, and for their effects")
	f.StringVar(&o.Backend.SQLiteFile, "sqlite-file", "", "`file` of SQLite, for -store sqlite and sqlite-tx, and for their effects")
	f.StringVar(&o.Backend.EtcdURL, "etcd-url", "", "members of etcd, a `list` of host:port with commas, for -store etcd: see lab/etcd/testserver")
	f.IntVar(&o.Backend.Pool, "pool", 0, "connections to the store's server; 0: the client's default")
	f.BoolVar(&o.Backend.NoCombining, "no-combining", false, "-store redis sends every command alone")
	f.IntVar(&o.Backend.Acked, "acked", 0, "replicas that confirm each write of -store redis; 0: none")
	f.IntVar(&o.Backend.MaxRecords, "max-records", 0, "records that -store memory holds; 0: its default")
	f.Int64Var(&o.Backend.MaxBytes, "max-bytes", 0, "`bytes` that the records of -store memory take; 0: its default")
	f.DurationVar(&o.Backend.TxTimeout, "tx-timeout", 0, "longest transaction of -store postgres-tx, mysql-tx and sqlite-tx; 0: its default")
	f.DurationVar(&o.Purge, "purge", 0, "how often to purge records that are past their retention; 0: never")

	f.DurationVar(&o.Engine.Lease, "lease", 0, "lease of an attempt; 0: the engine's default")
	f.DurationVar(&o.Engine.Retention, "retention", 0, "how long responses are replayed; 0: the engine's default")
	f.DurationVar(&o.Engine.MaxRun, "max-run", 0, "how long a handler runs before its context is cancelled; 0: the engine's default")
	f.DurationVar(&budget, "store-timeout", 0, "how long a request waits for the store, each time; 0: the engine's defaults")
	f.IntVar(&waiters, "max-waiters", 0, "duplicates that may wait, in all and for one key or scope; 0: the engine's defaults")

	enum(f, &o.Guard.Preset, "preset", "recoverable", map[string]reprise.Preset{"recoverable": reprise.Recoverable, "at-most-once": reprise.AtMostOnce})
	f.Func("key", "the key's `place`: header, field:/POINTER, param:NAME, or content, with which equal requests are one for the retention; default header", func(place string) error {
		kind, name, named := strings.Cut(place, ":")
		content = place == "content"
		switch {
		case place == "header", content:
			o.Guard.Key = protocol.KeySource{}
		case kind == "field" && named:
			o.Guard.Key = protocol.KeyField(name)
		case kind == "param" && named:
			o.Guard.Key = protocol.KeyParam(name)
		default:
			return errors.New("want header, field:/POINTER, param:NAME or content")
		}
		return nil
	})
	enum(f, &o.Guard.KeyMode, "key-mode", "compat", map[string]protocol.KeyMode{"compat": protocol.Compat, "strict": protocol.Strict})
	enum(f, &o.Guard.Oversize, "oversize", "summary", map[string]protocol.Oversize{"summary": protocol.Summary, "unavailable": protocol.Unavailable})
	f.BoolVar(&o.Guard.Required, "required", false, "refuse keyed methods without a key")
	f.Func("methods", "keyed methods, a `list` with commas; default POST,PATCH", func(list string) error {
		o.Guard.Methods = strings.Split(list, ",")
		return nil
	})
	f.DurationVar(&o.Guard.Horizon, "horizon", 0, "how much longer than its retention a key is remembered; 0: no longer")
	f.DurationVar(&o.Guard.Wait, "wait", 0, "how long a duplicate waits for the first request; 0: 409 at once")
	f.IntVar(&o.Guard.Limits.RequestBody, "max-request", 0, "`bytes` of a keyed request's body; 0: the default")
	f.IntVar(&o.Guard.Limits.ResponseBody, "max-response", 0, "`bytes` of a response's body that are kept; 0: the default")
	f.BoolVar(&o.Guard.FailOpen, "fail-open", false, "run unprotected when the store cannot be reached")
	f.BoolVar(&o.PerEndpoint, "per-endpoint", false, "one key may be used at several endpoints: method and escaped path")
	f.BoolVar(&o.Outer, "outer", false, "a layer outside of the middleware sets fields and a status")

	enum(f, &o.OuterBody, "outer-body", "none", map[string]adaptertest.OuterBody{"drain": adaptertest.Drains, "bind": adaptertest.Binds, "json": adaptertest.Decodes})
	enum(f, &o.Inner, "inner", "none", map[string]adaptertest.InnerGuard{"recoverable": inside(reprise.Recoverable), "at-most-once": inside(reprise.AtMostOnce)})

	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(help)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	o.Engine.ClaimTimeout, o.Engine.CompleteTimeout = budget, budget
	o.Engine.Waiting = reprise.WaitLimits{Total: waiters, PerKey: waiters, PerScope: waiters}
	if content {
		o.Guard.Key = protocol.KeyContent(cmp.Or(o.Engine.Retention, defaultRetention))
	}
	err = o.check()
	return o, err
}

// check finds the options that constructors would refuse, before a store is opened.
func (o *Options) check() error {
	for name, value := range map[string]int64{
		"pool": int64(o.Backend.Pool), "acked": int64(o.Backend.Acked), "max-records": int64(o.Backend.MaxRecords), "max-bytes": o.Backend.MaxBytes,
		"tx-timeout": int64(o.Backend.TxTimeout), "purge": int64(o.Purge),
	} {
		if value < 0 {
			return fmt.Errorf("flag -%s is negative", name)
		}
	}
	if o.Guard.FailOpen && o.Store == "postgres-tx" {
		return errors.New("flag -fail-open cannot be combined with -store postgres-tx")
	}
	_, err := o.app(&Backend{Store: memstore.New()}, slog.New(slog.DiscardHandler))
	return err
}

// app returns the application over a store.
func (o *Options) app(b *Backend, log *slog.Logger) (*testapp.App, error) {
	guard := o.Guard
	guard.Transactional = b.transactional
	return testapp.New(adaptertest.Options{
		Store: b.Store, Effect: b.Effect, Engine: o.Engine, Guard: guard, PerEndpoint: o.PerEndpoint,
		Outer: o.Outer, OuterBody: o.OuterBody, Inner: o.Inner,
	}, log)
}

// inside returns a guard with that preset, which is another than the one outside of it,
// whose policy it has otherwise.
func inside(preset reprise.Preset) adaptertest.InnerGuard {
	return func(outer *protocol.Guard) (*protocol.Guard, error) {
		return outer.With(func(c *protocol.Config) { c.Label, c.Preset = "inner", preset })
	}
}

// enum defines a flag whose value is one of a few names.
func enum[T any](f *flag.FlagSet, value *T, name, otherwise string, names map[string]T) {
	list := strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	*value = names[otherwise]
	f.Func(name, "one of "+list+"; default "+otherwise, func(s string) error {
		v, known := names[s]
		if !known {
			return fmt.Errorf("want one of %s", list)
		}
		*value = v
		return nil
	})
}

// themselves maps names to themselves.
func themselves(names []string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[n] = n
	}
	return m
}
