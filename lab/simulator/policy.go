package simulator

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// settings are a service: its policies.
type settings struct {
	guard    protocol.Config  // with that of its engine
	selected []option         // what With changes for requests of version 2; nil: nothing
	inner    *protocol.Config // of a guard inside; nil: none
	twice    bool             // the middleware of the guard is in the chain twice
	store    memstore.Bounds
}

// policies returns the policies of the service as its guards are made of them: the
// first one's, that of With, and that of the guard inside.
func (s *settings) policies() []protocol.Config {
	list := []protocol.Config{s.guard}
	if s.selected != nil {
		selected := s.guard
		apply(&selected, s.selected...)
		list = append(list, selected)
	}
	if s.inner != nil {
		inner := *s.inner
		inner.Engine = s.guard.Engine
		list = append(list, inner)
	}
	return list
}

// option sets a field of a service.
type option struct {
	name string
	set  func(*settings)
}

// service is the options of one deployed process. The fields that none sets are the
// defaults.
type service []option

func names(options []option) string {
	list := make([]string, len(options))
	for i, o := range options {
		list[i] = o.name
	}
	return strings.Join(list, ", ")
}

// field is a field of a configuration, with the values that are drawn for it.
type field struct {
	name   string
	values []option
}

// named is a value that does not print itself.
type named[T any] struct {
	text  string
	value T
}

// policyField draws a field of a guard's configuration.
func policyField[T any](name string, set func(*protocol.Config, T), values ...any) field {
	f := field{name: name}
	for _, v := range values {
		text := fmt.Sprint(v)
		if n, ok := v.(named[T]); ok {
			v, text = n.value, n.text
		}
		f.values = append(f.values, option{name + "=" + text, func(s *settings) { set(&s.guard, v.(T)) }})
	}
	return f
}

// policyFields are the fields of protocol.Config that every guard has for itself.
var policyFields = []field{
	policyField("Label", func(c *protocol.Config, v string) { c.Label = v }, "orders"),
	policyField("Preset", func(c *protocol.Config, v reprise.Preset) { c.Preset = v }, reprise.AtMostOnce),
	policyField("Retention", func(c *protocol.Config, v time.Duration) { c.Retention = v }, time.Second, 3*time.Second, 10*time.Second),
	policyField("Horizon", func(c *protocol.Config, v time.Duration) { c.Horizon = v }, 30*time.Second),
	policyField("MaxAttempts", func(c *protocol.Config, v int) { c.MaxAttempts = v }, 1, 2, 3),
	policyField("Wait", func(c *protocol.Config, v time.Duration) { c.Wait = v }, 2*time.Second, 8*time.Second),
	policyField("FailOpen", func(c *protocol.Config, v bool) { c.FailOpen = v }, true),
	policyField("Methods", func(c *protocol.Config, v []string) { c.Methods = v }, []string{"POST", "PUT"}),
	policyField("Required", func(c *protocol.Config, v bool) { c.Required = v }, true),
	policyField("Key", func(c *protocol.Config, v protocol.KeySource) { c.Key = v },
		named[protocol.KeySource]{"X-Key or Idempotency-Key", protocol.KeyHeader("X-Key", "Idempotency-Key")},
		named[protocol.KeySource]{"/key of the body", protocol.KeyField("/key")}, named[protocol.KeySource]{"parameter key", protocol.KeyParam("key")}),
	policyField("KeyMode", func(c *protocol.Config, v protocol.KeyMode) { c.KeyMode = v }, protocol.Strict),
	policyField("Endpoint", func(c *protocol.Config, v string) { c.Endpoint = v }, "orders"),
	policyField("Skip", func(c *protocol.Config, v func(context.Context, *protocol.Request) bool) { c.Skip = v },
		named[func(context.Context, *protocol.Request) bool]{"version 2", func(_ context.Context, r *protocol.Request) bool { return isVersion2(r) }}),
	policyField("Limits.Key", func(c *protocol.Config, v int) { c.Limits.Key = v }, 36),
	policyField("Limits.RequestBody", func(c *protocol.Config, v int) { c.Limits.RequestBody = v }, 40),
	policyField("Limits.ResponseBody", func(c *protocol.Config, v int) { c.Limits.ResponseBody = v }, 100),
	policyField("Oversize", func(c *protocol.Config, v protocol.Oversize) { c.Oversize = v }, protocol.Unavailable),
	policyField("Fingerprint.Func", func(c *protocol.Config, v protocol.Fingerprinter) { c.Fingerprint.Func = v },
		named[protocol.Fingerprinter]{"CanonicalJSON", protocol.CanonicalJSON}, named[protocol.Fingerprinter]{"NoFingerprint", protocol.NoFingerprint}),
	policyField("Fingerprint.Headers", func(c *protocol.Config, v []string) { c.Fingerprint.Headers = v }, []string{versionField}, []string{versionField}, []string{"Idempotency-Key"}),
	policyField("Keep.Headers", func(c *protocol.Config, v []string) { c.Keep.Headers = v }, []string{runField}),
	policyField("Keep.Decide", func(c *protocol.Config, v func(protocol.Ending) protocol.Decision) { c.Keep.Decide = v },
		named[func(protocol.Ending) protocol.Decision]{"keep all", func(protocol.Ending) protocol.Decision { return protocol.KeepResponse }},
		named[func(protocol.Ending) protocol.Decision]{"release 422", func(e protocol.Ending) protocol.Decision {
			if e.Status == 422 {
				return protocol.ReleaseKey
			}
			return protocol.ByPreset
		}},
		named[func(protocol.Ending) protocol.Decision]{"unknown 503", func(e protocol.Ending) protocol.Decision {
			if e.Status == 503 {
				return protocol.OutcomeUnknown
			}
			return protocol.ByPreset
		}},
		named[func(protocol.Ending) protocol.Decision]{"panic", func(protocol.Ending) protocol.Decision { panic("drawn") }}),
	policyField("Seal.Secret", func(c *protocol.Config, v protocol.Secret) { c.Seal.Secret, c.Seal.OtherSecrets = v, nil }, secret),
	policyField("Seal.ClearHead", func(c *protocol.Config, v bool) { c.Seal.ClearHead = v }, true),
	policyField("Seal.Strict", func(c *protocol.Config, v bool) { c.Seal.Strict = v }, true),
	policyField("Seal.MaxAge", func(c *protocol.Config, v time.Duration) { c.Seal.MaxAge = v }, 10*time.Second, 15*time.Minute),
	policyField("Keep.Annotate", func(c *protocol.Config, v func(context.Context) string) { c.Keep.Annotate = v },
		named[func(context.Context) string]{"a note", func(context.Context) string { return "note" }},
		named[func(context.Context) string]{"panic", func(context.Context) string { panic("drawn") }}),
	policyField("Expires", func(c *protocol.Config, v bool) { c.Expires = v }, true),
	policyField("Problems.Write", func(c *protocol.Config, v problemWriter) { c.Problems.Write = v },
		named[problemWriter]{"own", func(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
			return protocol.Response{Status: p.Status, Body: []byte(`{"code":"` + p.Code + `"}`)}
		}},
		named[problemWriter]{"panic", func(context.Context, *protocol.Request, protocol.Problem) protocol.Response { panic("drawn") }}),
}

type problemWriter = func(context.Context, *protocol.Request, protocol.Problem) protocol.Response

// engineFields are the fields of reprise.Config.
var engineFields = []field{
	policyField("Engine.Lease", func(c *protocol.Config, v time.Duration) { c.Engine.Lease = v }, time.Second, 2*time.Second, 3*time.Second),
	policyField("Engine.Retention", func(c *protocol.Config, v time.Duration) { c.Engine.Retention = v }, 5*time.Second),
	policyField("Engine.ClaimTimeout", func(c *protocol.Config, v time.Duration) { c.Engine.ClaimTimeout = v }, 500*time.Millisecond),
	policyField("Engine.CompleteTimeout", func(c *protocol.Config, v time.Duration) { c.Engine.CompleteTimeout = v }, 500*time.Millisecond),
	policyField("Engine.MaxRun", func(c *protocol.Config, v time.Duration) { c.Engine.MaxRun = v }, time.Second, 5*time.Second, time.Duration(-1)),
	policyField("Engine.Waiting.Total", func(c *protocol.Config, v int) { c.Engine.Waiting.Total = v }, 2),
	policyField("Engine.Waiting.PerKey", func(c *protocol.Config, v int) { c.Engine.Waiting.PerKey = v }, 1),
	policyField("Engine.Waiting.PerScope", func(c *protocol.Config, v int) { c.Engine.Waiting.PerScope = v }, 1),
	policyField("Engine.Background.Tasks", func(c *protocol.Config, v int) { c.Engine.Background.Tasks = v }, 1),
	policyField("Engine.Background.Bytes", func(c *protocol.Config, v int64) { c.Engine.Background.Bytes = v }, int64(1)),
	policyField("Engine.Background.Age", func(c *protocol.Config, v time.Duration) { c.Engine.Background.Age = v }, time.Second),
	policyField("Engine.Detach", func(c *protocol.Config, v func(context.Context) context.Context) { c.Engine.Detach = v },
		named[func(context.Context) context.Context]{"nothing", func(context.Context) context.Context { return context.Background() }}),
	policyField("Engine.Observer", func(c *protocol.Config, v reprise.Observer) { c.Engine.Observer = v },
		named[reprise.Observer]{"panic", reprise.ObserverFunc(func(context.Context, reprise.Event) { panic("drawn") })}),
}

// storeFields are the fields of memstore.Bounds.
var storeFields = []field{
	{"Records", []option{{"Records=1", func(s *settings) { s.store.Records = 1 }}, {"Records=2", func(s *settings) { s.store.Records = 2 }}}},
	{"Bytes", []option{{"Bytes=1024", func(s *settings) { s.store.Bytes = 1024 }}}},
}

// likely are the fields that most rules depend on.
const likely = "Key Preset Retention Horizon MaxAttempts Wait FailOpen Engine.Lease Engine.MaxRun Seal.Secret"

// drawOptions sets each field with a chance in percent.
func drawOptions(d dice, fields []field, chance int) (list []option) {
	for _, f := range fields {
		chance := chance
		switch {
		case f.name == "Engine.Lease": // that of the default lapses late
			chance = 80
		case strings.Contains(likely, f.name):
			chance = 35
		}
		if d.percent(chance) {
			list = append(list, of(d, f.values...))
		}
	}
	return list
}

// drawService draws the policies of a process: some that are not refused because they
// contradict themselves.
func drawService(d dice) service {
	for {
		s := drawOneService(d)
		drawn := settingsOf(s)
		if !slices.ContainsFunc(drawn.policies(), isRefused) {
			return s
		}
	}
}

func isRefused(c protocol.Config) bool {
	_, err := protocol.New(memstore.New(), c) // which starts nothing
	return err != nil
}

func drawOneService(d dice) service {
	s := service(drawOptions(d, engineFields, 8))
	s = append(s, drawOptions(d, policyFields, 5)...)
	if d.percent(15) {
		for _, o := range drawOptions(d, policyFields, 4) {
			s = append(s, option{"version 2: " + o.name, func(s *settings) { s.selected = append(s.selected, o) }})
		}
	}
	switch n := d.IntN(100); {
	case n < 6:
		s = append(s, option{"inside: a guard", func(s *settings) { s.inner = new(basePolicy()) }})
		for _, o := range drawOptions(d, policyFields, 4) {
			s = append(s, option{"inside: " + o.name, func(s *settings) { apply(s.inner, o) }})
		}
	case n < 12:
		s = append(s, option{"twice", func(s *settings) { s.twice = true }})
	}
	return s
}

// apply changes a policy.
func apply(c *protocol.Config, options ...option) {
	if c == nil {
		return // the guard inside was taken out of the draw
	}
	s := settings{guard: *c}
	for _, o := range options {
		o.set(&s)
	}
	*c = s.guard
}

// basePolicy is the part that all policies of a deployment share: sealed responses can be
// read, and nothing is logged.
func basePolicy() protocol.Config {
	return protocol.Config{
		Seal:   protocol.Sealing{OtherSecrets: []protocol.Secret{secret}},
		Engine: reprise.Config{Log: slog.New(slog.DiscardHandler)},
	}
}

var secret = func() protocol.Secret {
	s, err := protocol.NewSecret("drawn", []byte(strings.Repeat("s", 32)))
	if err != nil {
		panic(err)
	}
	return s
}()

// settingsOf applies the options.
func settingsOf(options []option) settings {
	s := settings{guard: basePolicy()}
	for _, o := range options {
		o.set(&s)
	}
	return s
}
