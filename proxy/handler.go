package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
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
	// query nor a header field, so it has no key.
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
}

// New returns a handler whose records are in st, which stays open when the handler is
// closed. The error names the invalid field of c.
func New(st store.Store, c Config, o Options) (*Handler, error) {
	engine, err := reprise.New(st, o.Engine)
	if err != nil {
		return nil, err
	}
	h := &Handler{engine: engine, log: engine.Config().Log, access: o.AccessLog}
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
	resp := &response{ResponseWriter: w}
	r = r.WithContext(context.WithValue(r.Context(), responseKey{}, resp))
	r.Host = normalHost(r.Host)
	p, pattern := rt.of(r)
	resp.pattern = pattern
	if inDoubt(r) {
		resp.Header().Set("Connection", "close")
	}
	defer func() { h.logAccess(r, p, resp, time.Since(began)) }()
	defer h.running.Add(-1)
	if h.running.Add(1) > int64(rt.maxRequests) {
		resp.Header().Set("Retry-After", "1")
		http.Error(resp, "The proxy is at its limit of concurrent requests. The request was not sent; retry it later.", http.StatusServiceUnavailable)
		return
	}
	if detail := rt.doubt(r, p); detail != "" {
		refuse(resp, detail)
		return
	}
	p.ServeHTTP(resp, r)
}

// routes are a configuration in use.
type routes struct {
	mux         *http.ServeMux // of *policy handlers; only asked, because it would redirect
	otherwise   *policy
	transport   *http.Transport
	maxRequests int
	routed      bool     // there are routes, so that a path or a host decides about the policy
	methods     []string // that some policy guards
}

// policy is the handler of a [Policy].
type policy struct {
	http.Handler

	name     string
	replayed string   // the field that marks a replay; empty: there are none
	methods  []string // that are guarded; empty: none
	fields   []string // of the header, that decide about the key, the scope and the fingerprint
}

func newRoutes(engine *reprise.Engine, c *Config, log *slog.Logger) (*routes, error) {
	seal, err := c.Seal.read()
	if err != nil {
		return nil, err
	}
	rt := &routes{mux: http.NewServeMux(), transport: newTransport(c), maxRequests: c.MaxRequests, routed: len(c.Routes) > 0}
	names := map[string]bool{}
	add := func(p Policy, name string) (*policy, error) {
		if p.Name == "" {
			p.Name = name
		}
		if names[p.Name] {
			return nil, fmt.Errorf("proxy: two policies have the name %q", p.Name)
		}
		names[p.Name] = true
		made, err := newPolicy(engine, c, &p, seal, rt.transport, log)
		if err != nil {
			return nil, fmt.Errorf("proxy: policy %q: %w", p.Name, err)
		}
		rt.methods = append(rt.methods, made.methods...)
		return made, nil
	}
	if rt.otherwise, err = add(c.Default, "default"); err != nil {
		return nil, err
	}
	for i := range c.Routes {
		made, err := add(c.Routes[i], fmt.Sprintf("route-%d", i+1))
		if err != nil {
			return nil, err
		}
		if len(c.Routes[i].Match) == 0 {
			return nil, fmt.Errorf("proxy: policy %q: match is empty; use [default] for the requests that no route matches", made.name)
		}
		for _, pattern := range c.Routes[i].Match {
			if err := register(rt.mux, pattern, made); err != nil {
				return nil, fmt.Errorf("proxy: policy %q: %w", made.name, err)
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
		p.Scope = c.Scope
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
	protected := reprisehttp.Middleware(guard, p.Scope.of)(unbounded(newForward(c, transport, aware, log)))
	return &policy{bounded(protected, time.Duration(c.BodyTimeout)), p.Name, replayed, guard.Config().Methods, p.fields(len(c.Trusted) > 0)}, nil
}

// bounded bounds the time in which the guard reads the body of a request with a key. If
// the writer has no deadlines, such as Caddy's, the server must bound that time.
func bounded(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
		}
		next.ServeHTTP(w, r)
	})
}

// unbounded removes that bound: a request without a key may stream its body, and the
// server reads the connection while the handler runs to notice that the client left.
func unbounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		}
		if _, keyed := reprise.AttemptFrom(r.Context()); keyed {
			w = heldBack{w}
		}
		next.ServeHTTP(w, r)
	})
}

// of returns the policy of a request and the pattern that matches it, empty if none does.
func (rt *routes) of(r *http.Request) (*policy, string) {
	handler, pattern := rt.mux.Handler(r)
	if p, ok := handler.(*policy); ok {
		return p, pattern
	}
	return rt.otherwise, ""
}
