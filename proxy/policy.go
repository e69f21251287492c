package proxy

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Policy is the policy of a route. A field that is not set has the default of the field
// of [protocol.Config] that it stands for, except Preset.
type Policy struct {
	// Name is the name of the policy in metrics, records and the access log. The default is
	// "default" or "route-1", "route-2" and so on, by the order of the routes.
	Name string `toml:"name"`

	// Match lists patterns of [http.ServeMux], such as "POST /v1/orders" or
	// "api.example.com/v1/orders/{id}"; the most specific one wins. A request of a method
	// that some policy guards is refused if its path or host is not in normal form, because
	// the upstream may then read another route in it. A pattern that is not in normal form,
	// or has a method that Methods does not list, is an error.
	Match []string `toml:"match"`

	// Unkeyed lets every request in normal form pass, with a key or without. Of the other
	// fields only Name and Match may be set.
	Unkeyed bool `toml:"unkeyed"`

	Scope    Scope    `toml:"scope"`    // the default is that of the Config
	Methods  []string `toml:"methods"`  // in upper case; the default is POST and PATCH
	Required bool     `toml:"required"` // a request without a key is refused
	Headers  []string `toml:"headers"`  // that may have the key; the default is Idempotency-Key
	Endpoint string   `toml:"endpoint"` // see [protocol.Config]

	// Preset is "at-most-once" or "recoverable". The default is at-most-once: when a process
	// of the proxy dies, the upstream may still execute its request, so a retry must not run
	// it again. Recoverable is for upstreams whose effects may happen twice.
	Preset string `toml:"preset"`

	Retention   Duration `toml:"retention"`    // how long responses are replayed
	Horizon     Duration `toml:"horizon"`      // how much longer keys are remembered
	Wait        Duration `toml:"wait"`         // how long a duplicate waits for the first request
	MaxAttempts int      `toml:"max_attempts"` // after which a lapsed record is not taken over
	FailOpen    bool     `toml:"fail_open"`    // run unprotected if the store is unreachable

	MaxKey          int `toml:"max_key"`           // bytes
	MaxRequestBody  int `toml:"max_request_body"`  // bytes, of requests with a key
	MaxResponseBody int `toml:"max_response_body"` // bytes, that a record keeps

	// Fingerprint says which requests with a key count as the same one: those with the same
	// bytes ("bytes", the default: method, path, query, content type and body), those whose
	// JSON bodies have the same value ("json"), or all ("none"). With "json",
	// FingerprintOmit has JSON pointers to the parts that do not count. The host always
	// counts, and so does X-Forwarded-Host if the Config trusts a peer.
	Fingerprint        string   `toml:"fingerprint"`
	FingerprintOmit    []string `toml:"fingerprint_omit"`
	FingerprintHeaders []string `toml:"fingerprint_headers"` // that count too

	// RecordPath keeps the path of a request in its record, for operators, in the clear. By
	// default the record has the method and the pattern of the route.
	RecordPath bool `toml:"record_path"`

	// UpstreamAware is for an upstream that honours the header too: a response that it marks
	// with Idempotent-Replayed: true reaches the client with that mark and is not recorded
	// here, nor is a 409 or a 5xx. Its retry reaches the upstream, which alone keeps it from
	// running twice. By default the proxy removes the mark, because the response of a first
	// run has none.
	UpstreamAware bool `toml:"upstream_aware"`
}

// Policies returns the default policy and those of the routes, in their order, with the
// names and scopes that they have by default.
func (c Config) Policies() []Policy {
	list := append([]Policy{c.Default}, c.Routes...)
	for i := range list {
		switch p := &list[i]; {
		case p.Name != "":
		case i == 0:
			p.Name = "default"
		default:
			p.Name = fmt.Sprintf("route-%d", i)
		}
		if !list[i].Unkeyed && list[i].Scope.of == nil {
			list[i].Scope = c.Scope
		}
	}
	return list
}

// presets are the values of Policy.Preset.
var presets = map[string]reprise.Preset{"": reprise.AtMostOnce, "at-most-once": reprise.AtMostOnce, "recoverable": reprise.Recoverable}

// fingerprints are the values of Policy.Fingerprint.
var fingerprints = map[string]protocol.Fingerprinter{
	"": nil, "bytes": nil, "json": protocol.CanonicalJSON, "none": protocol.NoFingerprint,
}

// describe returns the description that the record of a request has.
func (p *Policy) describe(ctx context.Context, r *protocol.Request) string {
	if p.RecordPath {
		return r.Method + " " + r.Path
	}
	pattern := responseOf(ctx).pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		pattern = strings.TrimLeft(pattern[i:], " \t")
	}
	return strings.TrimSpace(r.Method + " " + pattern)
}

// fields returns the canonical names of the fields that the policy decides by, those that
// may have the key first.
func (p *Policy) fields(trusts bool) []string {
	names := slices.Clone(p.Headers)
	if len(names) == 0 {
		names = append(names, "Idempotency-Key")
	}
	names = append(names, p.FingerprintHeaders...)
	if p.Scope.field != "" {
		names = append(names, p.Scope.field)
	}
	if trusts {
		names = append(names, forwardedHost)
	}
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	return names
}

// guard returns the guard of the policy over the engine.
func (p *Policy) guard(engine *reprise.Engine, seal protocol.Sealing, trusts bool) (*protocol.Guard, error) {
	preset, known := presets[p.Preset]
	if !known {
		return nil, fmt.Errorf("preset is %q, want at-most-once or recoverable", p.Preset)
	}
	fingerprint, known := fingerprints[p.Fingerprint]
	if !known {
		return nil, fmt.Errorf("fingerprint is %q, want bytes, json or none", p.Fingerprint)
	}
	// An upstream may serve several hosts, and a trusted peer may name the host. The host is
	// not a part of the key, because a retry by another name of the same host would run
	// again.
	compared := append(slices.Clone(p.FingerprintHeaders), "Host")
	if trusts {
		compared = append(compared, forwardedHost)
	}
	c := protocol.Config{
		Label:       p.Name,
		Methods:     p.Methods,
		Required:    p.Required,
		Endpoint:    p.Endpoint,
		Preset:      preset,
		Retention:   time.Duration(p.Retention),
		Horizon:     time.Duration(p.Horizon),
		Wait:        time.Duration(p.Wait),
		MaxAttempts: p.MaxAttempts,
		FailOpen:    p.FailOpen,
		Limits:      protocol.Limits{Key: p.MaxKey, RequestBody: p.MaxRequestBody, ResponseBody: p.MaxResponseBody},
		Fingerprint: protocol.Fingerprinting{Func: fingerprint, Omit: p.FingerprintOmit, Headers: compared},
		Seal:        seal,
		Describe:    p.describe,
		Problems:    protocol.ProblemFormat{Write: noteProblem},
	}
	if len(p.Headers) > 0 {
		c.Key = protocol.KeyHeader(p.Headers[0], p.Headers[1:]...)
	}
	g, err := protocol.Over(engine, c)
	if err != nil {
		return nil, err
	}
	for _, pattern := range p.Match {
		if i := strings.IndexAny(pattern, " \t"); i >= 0 && !slices.Contains(g.Config().Methods, pattern[:i]) {
			return nil, fmt.Errorf("match has %s, which methods does not list, so its keys would be ignored; list it, or set unkeyed", pattern[:i])
		}
	}
	return g, nil
}
