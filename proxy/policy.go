package proxy

import (
	"context"
	"fmt"
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
	// "api.example.com/v1/orders/{id}"; the most specific one wins. Before the match, "//",
	// "/./" and "/../" are removed from the path. The upstream gets the path as it came.
	Match []string `toml:"match"`

	// Unkeyed lets every request pass untouched, with a key or without.
	Unkeyed bool `toml:"unkeyed"`

	Scope    Scope    `toml:"scope"`    // the default is that of the Config
	Methods  []string `toml:"methods"`  // in upper case; the default is POST and PATCH
	Required bool     `toml:"required"` // a request without a key is refused
	Headers  []string `toml:"headers"`  // that have the key; the default is Idempotency-Key
	Endpoint string   `toml:"endpoint"` // see [protocol.Config]

	// Preset is "at-most-once" or "recoverable". The default is at-most-once: a process
	// that dies leaves a request of its upstream behind, which may still be executed, so a
	// retry must not run it again. Recoverable is for upstreams whose effects may happen
	// twice.
	Preset Preset `toml:"preset"`

	Retention   Duration `toml:"retention"`    // how long responses are replayed
	Horizon     Duration `toml:"horizon"`      // how much longer keys are remembered
	Wait        Duration `toml:"wait"`         // how long a duplicate waits for the first request
	MaxAttempts int      `toml:"max_attempts"` // after which a lapsed record is not taken over
	FailOpen    bool     `toml:"fail_open"`    // run unprotected if the store is unreachable

	MaxKey          int `toml:"max_key"`           // bytes
	MaxRequestBody  int `toml:"max_request_body"`  // bytes, of requests with a key
	MaxResponseBody int `toml:"max_response_body"` // bytes, that a record keeps

	// Fingerprint is "bytes", "json" or "none": which requests count as the same one. With
	// "json", FingerprintOmit has JSON pointers to the parts that do not count.
	Fingerprint        Fingerprint `toml:"fingerprint"`
	FingerprintOmit    []string    `toml:"fingerprint_omit"`
	FingerprintHeaders []string    `toml:"fingerprint_headers"` // that count too

	// UpstreamAware steps back where the upstream honours the header too: a response that
	// it marks with Idempotent-Replayed: true reaches the client with that mark and is not
	// recorded here. By default the mark is removed, as every response of a first run has
	// none.
	UpstreamAware bool `toml:"upstream_aware"`
}

// Preset stands for a [reprise.Preset].
type Preset uint8

// The presets.
const (
	AtMostOnce  Preset = iota // "at-most-once"
	Recoverable               // "recoverable"
)

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Preset) UnmarshalText(text []byte) error {
	switch string(text) {
	case "at-most-once":
		*p = AtMostOnce
	case "recoverable":
		*p = Recoverable
	default:
		return fmt.Errorf("the preset is %q, want at-most-once or recoverable", text)
	}
	return nil
}

// Fingerprint stands for a [protocol.Fingerprinter].
type Fingerprint uint8

// The fingerprints.
const (
	Bytes         Fingerprint = iota // "bytes": of method, path, query, content type and body
	JSON                             // "json": the same with the value of a JSON body
	NoFingerprint                    // "none": a key is not bound to its request
)

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *Fingerprint) UnmarshalText(text []byte) error {
	switch string(text) {
	case "bytes":
		*f = Bytes
	case "json":
		*f = JSON
	case "none":
		*f = NoFingerprint
	default:
		return fmt.Errorf("the fingerprint is %q, want bytes, json or none", text)
	}
	return nil
}

// guard returns the guard of the policy over the engine.
func (p *Policy) guard(engine *reprise.Engine) (*protocol.Guard, error) {
	c := protocol.Config{
		Name:        p.Name,
		Methods:     p.Methods,
		Required:    p.Required,
		Endpoint:    p.Endpoint,
		Preset:      reprise.AtMostOnce,
		Retention:   time.Duration(p.Retention),
		Horizon:     time.Duration(p.Horizon),
		Wait:        time.Duration(p.Wait),
		MaxAttempts: p.MaxAttempts,
		FailOpen:    p.FailOpen,
		Limits:      protocol.Limits{Key: p.MaxKey, RequestBody: p.MaxRequestBody, ResponseBody: p.MaxResponseBody},
		Fingerprint: protocol.Fingerprinting{
			Omit: p.FingerprintOmit, Headers: p.FingerprintHeaders,
		},
		Describe: func(_ context.Context, r *protocol.Request) string { return r.Method + " " + r.Path },
	}
	if p.Preset == Recoverable {
		c.Preset = reprise.Recoverable
	}
	switch p.Fingerprint {
	case JSON:
		c.Fingerprint.Func = protocol.CanonicalJSON
	case NoFingerprint:
		c.Fingerprint.Func = protocol.NoFingerprint
	default:
	}
	if len(p.Headers) > 0 {
		c.Key = protocol.KeyHeader(p.Headers[0], p.Headers[1:]...)
	}
	return protocol.Over(engine, c)
}
