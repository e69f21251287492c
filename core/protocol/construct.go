package protocol

import (
	"cmp"
	"context"
	"fmt"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
	"github.com/reprise-go/reprise/core/store"
)

// New returns a guard for a policy, over an engine that it makes from the store and
// Config.Engine:
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//
// Make one engine per process and store: for a second policy use [Guard.With], and [Over]
// for an engine that exists. Call [Guard.Close] before the program ends. New starts no
// goroutine. The error wraps [store.ErrInvalid] and names the invalid field of cfg.
func New(st store.Store, cfg Config) (*Guard, error) {
	if st == nil {
		return nil, fmt.Errorf("%w: New needs a store", store.ErrInvalid)
	}
	if cfg.Transactional {
		orDefault(&cfg.Engine.Lease, transactionalLease)
	}
	engine, err := reprise.New(st, cfg.Engine)
	if err != nil {
		return nil, fmt.Errorf("Config.Engine: %w", err)
	}
	cfg.Engine = reprise.Config{}
	g, err := newGuard(engine, cfg)
	if err != nil {
		return nil, err // an engine that began no operation has no goroutine to stop
	}
	g.owned = true
	return g, nil
}

// transactionalLease is the default lease of a policy whose effects commit with the
// response: to take over early is safe there, since a stale attempt commits nothing.
const transactionalLease = 10 * time.Second

// Over returns a guard for a policy over an engine that the caller has made and closes.
// Config.Engine must be unset. The error is that of [New].
func Over(engine *reprise.Engine, cfg Config) (*Guard, error) {
	if engine == nil {
		return nil, fmt.Errorf("%w: Over needs an engine", store.ErrInvalid)
	}
	return newGuard(engine, cfg)
}

func newGuard(engine *reprise.Engine, cfg Config) (*Guard, error) {
	given := dependent{cfg.Retention, cfg.Fingerprint.Func, cfg.Offload}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	omit, err := cfg.Fingerprint.omitted()
	if err != nil {
		return nil, err
	}
	fields, err := newFieldPolicy(cfg.Keep.Headers)
	if err != nil {
		return nil, err
	}
	tuning := engine.Config()
	if cfg.Transactional {
		if err := engine.Transacts(); err != nil {
			return nil, fmt.Errorf("Config.Transactional: %w", err)
		}
	}
	if most := store.MaxDuration - tuning.Retention; cfg.Retention == 0 && cfg.Horizon > most {
		return nil, invalid("Horizon", "%v, want at most %v: %v together with the engine's retention", cfg.Horizon, most, store.MaxDuration)
	}
	retention := cmp.Or(cfg.Retention, tuning.Retention)
	if err := cfg.Seal.checkAge(retention, &tuning); err != nil {
		return nil, err
	}
	if err := cfg.checkMemory(retention, &tuning); err != nil {
		return nil, err
	}
	engine.Declare(cfg.Label, kinds...)
	return &Guard{
		engine: engine, cfg: cfg, given: given, fields: fields, retention: retention,
		omit:     omit,
		seals:    cfg.Seal.on(),
		offloads: cfg.Offload.writes(),
		grammar:  keyGrammar{mode: cfg.KeyMode, max: cfg.Limits.Key},
		problems: newProblems(cfg.Problems.Base, cfg.Key),
		spools:   spool.Files{Dir: cfg.Offload.Dir, Max: cfg.Offload.MaxSpool},
		replays:  spool.Files{Dir: cfg.Offload.Dir, Max: cfg.Offload.MaxSpool},
	}, nil
}

// dependent is the fields of a [Config] whose defaults follow from other fields, as they
// were given: a guard made of another one must not take those defaults for choices.
type dependent struct {
	retention time.Duration // of KeyContent: the window
	digest    Fingerprinter // of KeyContent: CanonicalJSON
	offload   Offloading
}

// With returns another guard over the same engine. Its policy is that of g with the
// fields that change sets:
//
//	refunds, err := orders.With(func(c *protocol.Config) { c.Retention = 30 * 24 * time.Hour })
//
// The new guard is the same as one that [New] makes with those fields. change finds the
// defaults filled in, except the Retention and the Fingerprint.Func that follow from
// [KeyContent], which do not outlive another Key.
//
// It is how routes, tenants or API versions get their own policies. The new guard counts
// its own Stats. Make guards when the service starts, not for each request. Config.Engine
// is unset, and must stay so, because the engine is shared. The error is that of [New].
func (g *Guard) With(change func(*Config)) (*Guard, error) {
	cfg := g.cfg.clone()
	cfg.Retention, cfg.Fingerprint.Func = g.given.retention, g.given.digest
	change(&cfg)
	cfg.Offload.unfill(&g.cfg.Offload, &g.given.offload)
	other, err := newGuard(g.engine, cfg)
	if err != nil {
		return nil, err
	}
	other.owned = g.owned
	return other, nil
}

// Config returns the policy of the guard with its defaults filled in, for a page or a
// program that shows it. Retention is zero where it is the engine's, and Engine is always
// unset: see [Guard.Engine]. The defaults of a group that is off are not filled in.
func (g *Guard) Config() Config { return g.cfg.clone() }

// Engine returns the engine of the guard: for job.Do, for other guards ([Over]) and
// for programs that show its configuration and Stats.
func (g *Guard) Engine() *reprise.Engine { return g.engine }

// Close drains and stops the engine that [New] made, as [reprise.Engine.Close] does: it
// takes no new operations, waits until handlers and background work have ended or ctx
// ends, and returns an error if something is unfinished then. Every guard over the engine
// answers 503 store-unavailable from then on, those of [Guard.With] and [Over] too.
// Closing again waits again. The store stays open.
//
// The engine that [Over] was given belongs to its caller. Close of such a guard, or of
// one made from it by With, leaves it open and returns an error that wraps
// [store.ErrInvalid].
func (g *Guard) Close(ctx context.Context) error {
	if !g.owned {
		return fmt.Errorf("%w: Close: Over was given the engine of this guard: close that engine instead", store.ErrInvalid)
	}
	return g.engine.Close(ctx)
}
