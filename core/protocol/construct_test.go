package protocol_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// request has a key, and no body.
func request(key string) protocol.Request {
	return protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {key}}}
}

func TestConstructorsRefuseInvalidConfigurations(t *testing.T) {
	t.Parallel()
	guard := setup(t, protocol.Config{}).guard
	for name, c := range map[string]struct {
		of   func() (*protocol.Guard, error)
		says string
	}{
		"New without a store": {func() (*protocol.Guard, error) { return protocol.New(nil, protocol.Config{}) }, "New needs a store"},
		"New with an invalid engine": {func() (*protocol.Guard, error) {
			return protocol.New(memstore.New(), protocol.Config{Engine: reprise.Config{Lease: 1}})
		}, "Config.Engine: "},
		"New with an invalid policy": {func() (*protocol.Guard, error) {
			return protocol.New(memstore.New(), protocol.Config{Wait: -1})
		}, "Config.Wait"},
		"Over without an engine": {func() (*protocol.Guard, error) { return protocol.Over(nil, protocol.Config{}) }, "Over needs an engine"},
		"Over with another engine": {func() (*protocol.Guard, error) {
			return protocol.Over(guard.Engine(), protocol.Config{Engine: reprise.Config{Lease: time.Minute}})
		}, "Config.Engine: is set"},
		"With another lease": {func() (*protocol.Guard, error) {
			return guard.With(func(c *protocol.Config) { c.Engine.Lease = time.Minute })
		}, "Config.Engine: is set"},
		"With another observer": {func() (*protocol.Guard, error) {
			return guard.With(func(c *protocol.Config) { c.Engine.Observer = reprise.Observers() })
		}, "Config.Engine: is set"},
		"With another Detach": {func() (*protocol.Guard, error) {
			return guard.With(func(c *protocol.Config) { c.Engine.Detach = context.WithoutCancel })
		}, "Config.Engine: is set"},
	} {
		got, err := c.of()
		if got != nil || !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: a guard: %t, %v; want an error that says %q", name, got != nil, err, c.says)
		}
	}
}

// A guard has its own copies of the lists of its configuration.
func TestListsOfAConfigAreCopied(t *testing.T) {
	t.Parallel()
	cfg := protocol.Config{
		Methods:     []string{"POST"},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{"/at"}, Headers: []string{"X-Version"}},
		Keep:        protocol.Keeping{Headers: []string{"Location"}},
	}
	lists := func(c protocol.Config) string {
		return fmt.Sprint(c.Methods, c.Fingerprint.Omit, c.Fingerprint.Headers, c.Keep.Headers)
	}
	guard := setup(t, cfg).guard
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	want := lists(guard.Config())
	for _, c := range []protocol.Config{cfg, guard.Config()} { // given, and shown
		for _, list := range [][]string{c.Methods, c.Fingerprint.Omit, c.Fingerprint.Headers, c.Keep.Headers} {
			list[0] = "changed"
		}
		if got := lists(guard.Config()); got != want {
			t.Errorf("the caller changed the policy from %s to %s", want, got)
		}
	}
}

// Two options that promise what cannot be true of one operation are refused together,
// and each is accepted without the other.
func TestContradictingOptionsAreRefused(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	seal := protocol.Sealing{Secret: secret(t, "1")}
	spool := protocol.Offloading{Blobs: new(blobs), MaxBody: gib, MaxSpool: gib}
	for name, c := range map[string]struct {
		first, second func(*protocol.Config)
		says          string
	}{
		"may run twice, and never": {
			first:  func(c *protocol.Config) { c.FailOpen = true },
			second: func(c *protocol.Config) { c.Preset = reprise.AtMostOnce },
			says:   "Config.FailOpen: cannot be combined with AtMostOnce",
		},
		"may run twice, and never again": {
			first:  func(c *protocol.Config) { c.FailOpen = true },
			second: func(c *protocol.Config) { c.Horizon = time.Hour },
			says:   "Config.FailOpen: cannot be combined with Horizon",
		},
		"one key under two names, and two requests": {
			first:  func(c *protocol.Config) { c.Key = protocol.KeyHeader("X-Key", "Idempotency-Key") },
			second: func(c *protocol.Config) { c.Fingerprint.Headers = []string{"accept", "x-key"} },
			says:   "Config.Fingerprint.Headers: x-key is a header of the key",
		},
		"sealed, and too long for the room": {
			first:  func(c *protocol.Config) { c.Seal = seal },
			second: func(c *protocol.Config) { c.Offload = spool },
			says:   "Config.Offload.MaxSpool: 1073741824, want at least MaxBody, 1074200576 bytes when it is sealed",
		},
		"reads what is sealed, and has no room": {
			first:  func(c *protocol.Config) { c.Seal.OtherSecrets = []protocol.Secret{seal.Secret} },
			second: func(c *protocol.Config) { c.Offload = spool; c.Offload.ReadOnly = true },
			says:   "Config.Offload.MaxSpool: 1073741824, want at least MaxBody",
		},
		"never runs again, and is forgotten while it runs": {
			first:  func(c *protocol.Config) { c.Preset = reprise.AtMostOnce },
			second: func(c *protocol.Config) { c.Retention = time.Minute },
			says:   "Config.Retention: 1m0s and a Horizon of 0s, want at least 1m30s together, or a shorter Engine.MaxRun",
		},
	} {
		engine := must(reprise.New(memstore.New(), reprise.Config{MaxRun: time.Minute}))
		var both protocol.Config
		c.first(&both)
		c.second(&both)
		if _, err := protocol.Over(engine, both); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		for _, change := range []func(*protocol.Config){c.first, c.second} {
			cfg := protocol.Config{Retention: time.Hour}
			change(&cfg)
			if _, err := protocol.Over(engine, cfg); err != nil {
				t.Errorf("%s: one of the two is refused: %v", name, err)
			}
		}
	}
	if _, err := protocol.New(memstore.New(), protocol.Config{
		Seal: seal, Offload: protocol.Offloading{Blobs: new(blobs), MaxBody: 8 * gib},
	}); err != nil {
		t.Errorf("the default of MaxSpool has no room for a sealed body: %v", err)
	}
}

// AtMostOnce remembers a key for as long as a handler may run, and a lease.
func TestAtMostOnceOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	const run, lease = 10 * time.Minute, 20 * time.Second
	for name, c := range map[string]struct {
		engine reprise.Config
		policy protocol.Config
		ok     bool
	}{
		"long enough":        {policy: protocol.Config{Retention: run + lease}, ok: true},
		"with a horizon":     {policy: protocol.Config{Retention: time.Second, Horizon: run + lease - time.Second}, ok: true},
		"too short":          {policy: protocol.Config{Retention: run + lease - 1}},
		"of the engine":      {engine: reprise.Config{Retention: run}},
		"no bound of a run":  {engine: reprise.Config{MaxRun: -1}, policy: protocol.Config{Retention: time.Second}, ok: true},
		"the content is key": {policy: protocol.Config{Key: protocol.KeyContent(time.Second)}, ok: true},
	} {
		c.engine.Lease, c.engine.MaxRun = lease, cmp.Or(c.engine.MaxRun, run)
		c.policy.Engine, c.policy.Preset = c.engine, reprise.AtMostOnce
		if _, err := protocol.New(memstore.New(), c.policy); (err == nil) != c.ok || !c.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With accepts and refuses what New does, and fills in the same defaults: one that
// depends on another field follows it.
func TestWithAcceptsTheConfigurationsOfNew(t *testing.T) {
	t.Parallel()
	offload := protocol.Config{Offload: protocol.Offloading{Blobs: new(blobs)}}
	spool, body := offload, offload
	spool.Offload.MaxSpool = 4 << 30
	body.Offload.MaxBody = 1 << 30
	sealed := protocol.Config{Seal: protocol.Sealing{Secret: secret(t, "1")}}
	for name, c := range map[string]struct {
		base   protocol.Config
		change func(*protocol.Config)
		ok     bool
	}{
		"a body over the default of MaxSpool": {offload, func(c *protocol.Config) { c.Offload.MaxBody = 8 << 30 }, true},
		"a body over MaxSpool":                {spool, func(c *protocol.Config) { c.Offload.MaxBody = 8 << 30 }, false},
		"a larger MaxSpool":                   {spool, func(c *protocol.Config) { c.Offload.MaxSpool, c.Offload.MaxBody = 9<<30, 8<<30 }, true},
		"a smaller body":                      {body, func(c *protocol.Config) { c.Offload.MaxBody = 2 << 20 }, true},
		"a small MaxSpool":                    {offload, func(c *protocol.Config) { c.Offload.MaxSpool = 256<<20 - 1 }, false},
		"no Blobs":                            {offload, func(c *protocol.Config) { c.Offload.Blobs = nil }, true},
		"no Blobs, with a MaxBody":            {body, func(c *protocol.Config) { c.Offload.Blobs = nil }, false},
		"a body over MaxBody":                 {offload, func(c *protocol.Config) { c.Offload.MaxBody = 1 << 20 }, false},
		"another Timeout":                     {offload, func(c *protocol.Config) { c.Offload.Timeout = time.Minute }, true},
		"no secret":                           {sealed, func(c *protocol.Config) { c.Seal = protocol.Sealing{} }, true},
		"another method":                      {offload, func(c *protocol.Config) { c.Methods = []string{"PUT"} }, true},
		"methods of no request":               {offload, func(c *protocol.Config) { c.Methods = []string{} }, false},
	} {
		changed := c.base
		c.change(&changed)
		want, err := protocol.New(memstore.New(), changed)
		if (err == nil) != c.ok {
			t.Errorf("%s: New: %v", name, err)
		}
		base := setup(t, c.base).guard
		between := must(base.With(func(c *protocol.Config) { c.Label = "between" }))
		for _, from := range []*protocol.Guard{base, between} {
			got, refused := from.With(c.change)
			if (refused == nil) != c.ok {
				t.Errorf("%s: With: %v", name, refused)
			} else if c.ok && got.Config().Offload != want.Config().Offload {
				t.Errorf("%s: With makes %+v, want %+v", name, got.Config().Offload, want.Config().Offload)
			}
		}
	}
	guard := setup(t, offload).guard
	other := must(guard.With(func(c *protocol.Config) {
		if c.Offload.MaxBody != 256<<20 || c.Offload.MaxSpool != 4<<30 {
			t.Errorf("a change sees %+v, want the defaults", c.Offload)
		}
	}))
	if err := other.Close(t.Context()); err != nil { // their one engine, which New made
		t.Error(err)
	}
}

// The engine that Over was given serves its other guards until its maker closes it.
func TestCloseLeavesTheEngineOfOverOpen(t *testing.T) {
	t.Parallel()
	engine := must(reprise.New(memstore.New(), reprise.Config{}))
	guard := must(protocol.Over(engine, protocol.Config{}))
	other := must(guard.With(func(*protocol.Config) {}))
	for _, g := range []*protocol.Guard{guard, other} {
		if err := g.Close(t.Context()); !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrMisconfigured) {
			t.Errorf("%v, want ErrInvalid", err)
		}
		if g.Engine() != engine {
			t.Error("the engine is another one")
		}
	}
	a := guard.Admit(t.Context(), request("key"), scope)
	wantRun(t, a)
	finish(a.Exchange, 201)
	if err := engine.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestGuardListsTheProblemsThatItCanGive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code protocol.Code
		cfg  protocol.Config // of a guard that gives it
	}{
		{protocol.CodeKeyMissing, protocol.Config{Required: true}},
		{protocol.CodeResultExpired, protocol.Config{Horizon: time.Hour}},
	} {
		has := func(g *protocol.Guard) bool {
			return slices.ContainsFunc(g.Problems(), func(p protocol.Problem) bool { return p.Code == c.code })
		}
		if !has(setup(t, c.cfg).guard) || has(setup(t, protocol.Config{}).guard) {
			t.Errorf("%s is missing, or a guard without %+v lists it", c.code, c.cfg)
		}
	}
	retry := map[protocol.Code]time.Duration{protocol.CodeInProgress: time.Second, protocol.CodeStoreUnavailable: 2 * time.Second}
	for _, p := range setup(t, protocol.Config{}).guard.Problems() {
		if p.RetryAfter != retry[p.Code] {
			t.Errorf("%s asks for a retry after %v, want %v", p.Code, p.RetryAfter, retry[p.Code])
		}
		if p.Code == protocol.CodeNotApplied || p.Code == protocol.CodeResponseTooLarge {
			t.Errorf("%s is listed without a transactional store", p.Code)
		}
	}
}

func TestKeepsAsksDecideAndSurvivesItsPanic(t *testing.T) {
	t.Parallel()
	panics := func(protocol.Ending) protocol.Decision { panic("a bug") }
	for _, c := range []struct {
		cfg    protocol.Config
		status int
		want   bool
	}{
		{protocol.Config{}, 201, true},
		{protocol.Config{}, 429, false},
		{protocol.Config{}, 500, false},
		{protocol.Config{Preset: reprise.AtMostOnce}, 500, true},
		{protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { return protocol.KeepResponse }}}, 500, true},
		{protocol.Config{Keep: protocol.Keeping{Decide: panics}}, 201, false},
		{protocol.Config{Keep: protocol.Keeping{Decide: panics}, Preset: reprise.AtMostOnce}, 201, true},
	} {
		if got := setup(t, c.cfg).guard.Keeps(c.status); got != c.want {
			t.Errorf("preset %v: keeps %d: %v, want %v", c.cfg.Preset, c.status, got, c.want)
		}
	}
}
