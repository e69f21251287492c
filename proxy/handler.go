package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Options are the settings of a [Handler] that a file cannot have. The zero value is
// valid.
type Options struct {
	// Engine tunes the engine. Its Log also gets the errors of the upstream.
	Engine reprise.Config

	// AccessLog, if not nil, gets a line for each request. It has the path and neither the
	// query nor a header field, so it has no key; the first 12 digits of the record's ID;
	// and the code of a problem that the guard answered with.
	AccessLog *slog.Logger
}

// Handler forwards requests to an upstream under the policies of a [Config]. Make one
// with [New]. Its methods are safe for concurrent use.
type Handler struct {
	engine  *reprise.Engine
	log     *slog.Logger
	access  *slog.Logger
	current atomic.Pointer[routes]
	running atomic.Int64 // requests that are being served
	held    atomic.Int64 // bytes of bodies
	limits  limits
}

// New returns a handler whose records are in st, which stays open when the handler is
// closed. The error names the invalid field of c.
func New(st store.Store, c Config, o Options) (*Handler, error) {
	if o.AccessLog != nil {
		o.Engine.Observer = reprise.Observers(reprise.ObserverFunc(noteID), o.Engine.Observer)
	}
	engine, err := reprise.New(st, o.Engine)
	if err != nil {
		return nil, err
	}
	h := &Handler{engine: engine, log: engine.Config().Log, access: o.AccessLog, limits: newLimits()}
	if h.log == nil {
		h.log = slog.Default()
	}
	if err := h.Reload(c); err != nil {
		return nil, err
	}
	return h, nil
}

// Reload replaces the configuration. Requests that have begun end under the former one.
// If c is invalid, the former one stays, and the error names the field.
func (h *Handler) Reload(c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	next, err := newRoutes(h.engine, &c, h.log)
	if err != nil {
		return err
	}
	if former := h.current.Swap(next); former != nil {
		former.transport.CloseIdleConnections()
	}
	return nil
}

// Engine returns the engine of all policies, for metrics and operators.
func (h *Handler) Engine() *reprise.Engine { return h.engine }

// Trusts reports whether the address of a peer, with a port, is a trusted one.
func (h *Handler) Trusts(peer string) bool { return isTrusted(peer, h.current.Load().trusted) }

// Close refuses new requests with a key and waits until those that run have ended, or
// until ctx ends. Shut the server down first.
func (h *Handler) Close(ctx context.Context) error {
	err := h.engine.Close(ctx)
	h.current.Load().transport.CloseIdleConnections()
	return err
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	rt := h.current.Load()
	resp := &response{ResponseWriter: w, handler: h, timeout: rt.writeTimeout, perByte: rt.perByte}
	r = r.WithContext(context.WithValue(r.Context(), responseKey{}, resp))
	resp.request = r
	r.Host = normalHost(r.Host)
	p, pattern := rt.of(r)
	resp.policy, resp.pattern = p.name, pattern
	resp.ends = inDoubt(r)
	defer func() { h.logAccess(r, p, resp, time.Since(began)) }()
	defer h.running.Add(-1)
	defer resp.arm(0) // what the server writes when the handler has returned
	if h.running.Add(1) > int64(rt.maxRequests) {
		h.meet(r.Context(), LimitRequests, resp)
		busy("concurrent requests").Write(resp.Header(), resp)
		return
	}
	if detail := rt.doubt(r, p); detail != "" {
		h.meet(r.Context(), LimitNormalForm, resp)
		refuse(resp, detail)
		return
	}
	if p.isKeyed(r) && r.ContentLength != 0 {
		held := &body{ReadCloser: r.Body, response: resp, due: began.Add(rt.bodyTimeout), most: rt.maxHeld}
		defer held.letGo()
		r.Body = held
		_ = http.NewResponseController(w).SetReadDeadline(began.Add(rt.bodyTimeout)) // also if the guard does not read it
	}
	p.ServeHTTP(resp, r)
}

// routes are a configuration in use.
type routes struct {
	mux         *http.ServeMux // of *policy handlers; only asked, because it would redirect
	otherwise   *policy
	transport   *http.Transport
	maxRequests int
	maxHeld     int64 // bytes of bodies
	trusted     []Prefix

	bodyTimeout, writeTimeout time.Duration
	perByte                   time.Duration // at the least rate

	routed  bool     // there are routes, so that a path or a host decides about the policy
	methods []string // that some policy guards
}

// policy is the handler of a [Policy].
type policy struct {
	http.Handler

	name     string
	replayed string   // the field that marks a replay; empty: there are none
	methods  []string // that are guarded; empty: none
	keys     []string // the fields that may have the key
	fields   []string // those that decide about the key, the scope and the fingerprint
}

// isKeyed reports whether the guard handles a request.
func (p *policy) isKeyed(r *http.Request) bool {
	return slices.Contains(p.methods, r.Method) && slices.ContainsFunc(p.keys, func(name string) bool { return len(r.Header[name]) > 0 })
}

func newRoutes(engine *reprise.Engine, c *Config, log *slog.Logger) (*routes, error) {
	seal, err := c.Seal.read()
	if err != nil {
		return nil, err
	}
	rt := &routes{
		mux: http.NewServeMux(), transport: newTransport(c), maxRequests: c.MaxRequests, maxHeld: c.MaxHeldBodies, trusted: c.Trusted, routed: len(c.Routes) > 0,
		bodyTimeout: time.Duration(c.BodyTimeout), writeTimeout: time.Duration(c.WriteTimeout), perByte: time.Second / time.Duration(c.MinRate),
	}
	names := map[string]bool{}
	for i, p := range c.Policies() {
		if names[p.Name] {
			return nil, fmt.Errorf("proxy: two policies have the name %q", p.Name)
		}
		names[p.Name] = true
		made, err := newPolicy(engine, c, &p, seal, rt.transport, log)
		if err != nil {
			return nil, fmt.Errorf("proxy: policy %q: %w", p.Name, err)
		}
		rt.methods = append(rt.methods, made.methods...)
		if i == 0 {
			rt.otherwise = made
			continue
		}
		if len(p.Match) == 0 {
			return nil, fmt.Errorf("proxy: policy %q: match is empty; use [default] for the requests that no route matches", p.Name)
		}
		for _, pattern := range p.Match {
			if err := register(rt.mux, pattern, made); err != nil {
				return nil, fmt.Errorf("proxy: policy %q: %w", p.Name, err)
			}
		}
	}
	return rt, nil
}

// register adds a pattern. A ServeMux panics if it is invalid or conflicts with another.
func register(mux *http.ServeMux, pattern string, p *policy) (err error) {
	target := pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		target = strings.TrimLeft(pattern[i:], " \t")
	}
	if i := strings.IndexByte(target, '/'); i >= 0 && (i > 0 && (!isHost(target[:i]) || target[:i] != normalHost(target[:i]) || strings.Contains(target[:i], ":")) || !normalPath(target[i:])) {
		return fmt.Errorf("match has the pattern %q, which no request in normal form matches: write the host in lower case without a port or a dot at its end, and the path decoded, without empty segments, dots and any of \\ ; ? # %%", pattern)
	}
	defer func() {
		if reason := recover(); reason != nil {
			text, _, _ := strings.Cut(fmt.Sprint(reason), " (registered at ")
			err = fmt.Errorf("match has the pattern %q: %s", pattern, text)
		}
	}()
	mux.Handle(pattern, p)
	return nil
}

func newPolicy(engine *reprise.Engine, c *Config, p *Policy, seal protocol.Sealing, transport http.RoundTripper, log *slog.Logger) (*policy, error) {
	if p.Unkeyed {
		if !reflect.DeepEqual(*p, Policy{Name: p.Name, Match: p.Match, Unkeyed: true}) {
			return nil, errors.New("unkeyed and other settings are set; an unkeyed policy has only a name and patterns")
		}
		return &policy{Handler: newForward(c, transport, "", log), name: p.Name}, nil
	}
	if p.Scope.of == nil {
		return nil, fmt.Errorf("the scope is missing, %w", errNotation)
	}
	guard, err := p.guard(engine, seal, len(c.Trusted) > 0)
	if err != nil {
		return nil, err
	}
	replayed, aware := protocol.FieldReplayed, ""
	if p.UpstreamAware {
		aware = replayed
	}
	fields := p.fields(len(c.Trusted) > 0)
	if i := slices.IndexFunc(fields, ofHop); i >= 0 && len(c.Trusted) == 0 {
		return nil, fmt.Errorf("%s does not reach the service without trusted_addresses, so it cannot decide", fields[i])
	}
	if most := guard.Config().Limits.RequestBody; int64(most) > c.MaxHeldBodies {
		return nil, fmt.Errorf("max_request_body is %d, above the %d of max_held_bodies", most, c.MaxHeldBodies)
	}
	return &policy{
		Handler: reprisehttp.Middleware(guard, p.Scope.of)(holdingBack(newForward(c, transport, aware, log))),
		name:    p.Name, replayed: replayed, methods: guard.Config().Methods,
		keys: fields[:max(len(p.Headers), 1)], fields: fields,
	}, nil
}

// of returns the policy of a request and the pattern that matches it, empty if none does.
func (rt *routes) of(r *http.Request) (*policy, string) {
	handler, pattern := rt.mux.Handler(r)
	if p, ok := handler.(*policy); ok {
		return p, pattern
	}
	return rt.otherwise, ""
}
