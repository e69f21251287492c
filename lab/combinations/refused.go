package combinations

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// contradictions are the fields that promise two things at once. A policy with such a
// pair is refused when it is made, and no other is.
var contradictions = []struct {
	name string
	in   func(c *protocol.Config, e *reprise.Config) bool
}{
	{"FailOpen with AtMostOnce", func(c *protocol.Config, _ *reprise.Config) bool { return c.FailOpen && c.Preset == reprise.AtMostOnce }},
	{"FailOpen with Horizon", func(c *protocol.Config, _ *reprise.Config) bool { return c.FailOpen && c.Horizon > 0 }},
	{"a field of Seal without Secret", func(c *protocol.Config, e *reprise.Config) bool {
		return c.Seal.Secret == protocol.Secret{} && (c.Seal.ClearHead || c.Seal.Strict || c.Seal.MaxAge > 0)
	}},
	{"Seal.MaxAge, with which replays end before their retention", func(c *protocol.Config, e *reprise.Config) bool {
		return c.Seal.MaxAge > 0 && c.Seal.MaxAge < cmp.Or(c.Retention, e.Retention)+e.CompleteTimeout+e.Background.Age+e.Lease+time.Minute
	}},
	{"AtMostOnce, with which a key is forgotten while its handler runs", func(c *protocol.Config, e *reprise.Config) bool {
		return c.Preset == reprise.AtMostOnce && c.Key.Window() == 0 && e.MaxRun > 0 && cmp.Or(c.Retention, e.Retention)+c.Horizon < e.MaxRun+e.Lease
	}},
	{"the key among Fingerprint.Headers", func(c *protocol.Config, e *reprise.Config) bool {
		return slices.ContainsFunc(c.Fingerprint.Headers, func(name string) bool { return slices.Contains(c.Key.Headers(), name) })
	}},
	{"KeyContent with another Retention", func(c *protocol.Config, _ *reprise.Config) bool {
		return c.Key.Window() > 0 && c.Retention != c.Key.Window()
	}},
	{"KeyContent with Horizon", func(c *protocol.Config, _ *reprise.Config) bool { return c.Key.Window() > 0 && c.Horizon > 0 }},
	{"KeyContent with NoFingerprint", func(c *protocol.Config, _ *reprise.Config) bool {
		return c.Key.Window() > 0 && reflect.ValueOf(c.Fingerprint.Func).Pointer() == reflect.ValueOf(protocol.NoFingerprint).Pointer()
	}},
	{"Fingerprint.Omit without CanonicalJSON", func(c *protocol.Config, _ *reprise.Config) bool {
		return len(c.Fingerprint.Omit) > 0 && reflect.ValueOf(c.Fingerprint.Func).Pointer() != reflect.ValueOf(protocol.CanonicalJSON).Pointer()
	}},
	{"Offload.MaxBody above Offload.MaxSpool", func(c *protocol.Config, e *reprise.Config) bool {
		return c.Offload.MaxSpool > 0 && c.Offload.MaxBody > c.Offload.MaxSpool
	}},
}

// engineOf returns the configuration of a policy's engine, with the defaults of the
// fields that decide about contradictions.
func engineOf(c *protocol.Config) reprise.Config {
	e, defaults := c.Engine, engineDefaults()
	e.Retention = cmp.Or(e.Retention, defaults.Retention)
	e.CompleteTimeout = cmp.Or(e.CompleteTimeout, defaults.CompleteTimeout)
	e.Lease = cmp.Or(e.Lease, defaults.Lease)
	e.MaxRun = cmp.Or(e.MaxRun, defaults.MaxRun)
	e.Background.Age = cmp.Or(e.Background.Age, defaults.Background.Age)
	return e
}

var engineDefaults = sync.OnceValue(func() reprise.Config {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		panic(err) // of the zero value
	}
	return engine.Config()
})

// filled returns a policy with the defaults that depend on its window.
func filled(c protocol.Config) protocol.Config {
	if window := c.Key.Window(); window > 0 {
		c.Retention = cmp.Or(c.Retention, window)
		if c.Fingerprint.Func == nil {
			c.Fingerprint.Func = protocol.CanonicalJSON
		}
	}
	return c
}

// contradicts names the first pair of fields in a policy that promise two things at once.
func contradicts(c *protocol.Config) string {
	e, all := engineOf(c), filled(*c)
	for _, pair := range contradictions {
		if pair.in(&all, &e) {
			return pair.name
		}
	}
	return ""
}

// refuses judges whether a policy was made, with the error of that, and reports whether
// it was refused.
func (w *world) refuses(c *protocol.Config, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	pair := contradicts(c)
	switch {
	case pair != "" && err == nil:
		w.find("construction: %s was accepted", pair)
	case pair == "" && err != nil:
		w.find("construction: refused for no reason: %v", err)
	case pair != "":
		w.tally["refused: "+pair]++
	}
	return err != nil
}
