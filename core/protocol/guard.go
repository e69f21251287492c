package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Guard is one policy over one engine. [New] returns one; its methods are safe for
// concurrent use.
type Guard struct {
	engine   *reprise.Engine
	cfg      Config
	grammar  keyGrammar
	fields   fieldPolicy
	problems problems
	counts   counts
}

// Stats counts what a guard did that leaves no other trace. The numbers only grow.
type Stats struct {
	DroppedCookies  uint64 // Set-Cookie lines that were not kept (R14)
	HeadersTooLarge uint64 // responses with too many or too long fields to keep: their retries get 409 result-unavailable
	Unprotected     uint64 // handlers that ran without a claim, because FailOpen allows it
}

type counts struct{ cookies, headers, unprotected atomic.Uint64 }

// New returns a guard for a policy. The error wraps [reprise.ErrInvalid] and names the
// invalid field of cfg.
func New(engine *reprise.Engine, cfg Config) (*Guard, error) {
	if engine == nil {
		return nil, fmt.Errorf("%w: New needs an engine", reprise.ErrInvalid)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	fields, err := newFieldPolicy(cfg.KeepHeaders)
	if err != nil {
		return nil, err
	}
	return &Guard{
		engine: engine, cfg: cfg, fields: fields,
		grammar:  keyGrammar{mode: cfg.KeyMode, max: cfg.MaxKeyLength},
		problems: newProblems(cfg.ProblemBase, cfg.Header),
	}, nil
}

// With returns another guard over the same engine, whose policy is that of g except for
// what change sets:
//
//	refunds, err := orders.With(func(c *protocol.Config) { c.Retention = 30 * 24 * time.Hour })
//
// It is how routes, tenants or API versions get a policy of their own; [Config.Select]
// chooses between guards by the request. The new guard counts its own Stats. Make guards
// when the service starts, not for each request. The error is that of [New].
func (g *Guard) With(change func(*Config)) (*Guard, error) {
	cfg := g.cfg.clone()
	change(&cfg)
	return New(g.engine, cfg)
}

// Config returns the policy of the guard with its defaults filled in, for a page or a
// program that shows it. Retention is zero where it is the engine's.
func (g *Guard) Config() Config { return g.cfg.clone() }

// Stats returns the counts since the guard was made.
func (g *Guard) Stats() Stats {
	return Stats{
		DroppedCookies:  g.counts.cookies.Load(),
		HeadersTooLarge: g.counts.headers.Load(),
		Unprotected:     g.counts.unprotected.Load(),
	}
}

// Admission is what to do with a request: exactly one of three things.
type Admission struct {
	Pass     bool      // run the handler, untouched
	Exchange *Exchange // not nil: run the handler in it
	Response Response  // otherwise: write it; the handler does not run
}

// How long a client is asked to wait before it tries again.
const (
	retryRunning = time.Second
	retryStore   = 2 * time.Second
)

// Admit decides about one request. It checks method, key lines, presence, grammar, scope
// and body, in this order, and then asks the engine. A request that is not keyed costs no
// allocation, calls no scope function and reads no body.
//
// scope names the authenticated principal that the key belongs to. An error, an empty
// name, or one with a control byte refuses the request with 403; [ErrUnscoped] puts the
// key in the key space that all clients share. It is called at most once, before Admit
// returns. ctx bounds the wait for another attempt, if the policy waits, and its values
// are the handler's; see [reprise.Engine.Begin].
//
// A function of the policy that panics refuses the request with 500 internal-error.
func (g *Guard) Admit(ctx context.Context, req Request, scope func() (string, error)) Admission {
	if g.cfg.Select != nil {
		other, err := g.choose(ctx, req)
		if err != nil {
			return g.refuse(ctx, &req, CodeInternalError, 0, err)
		}
		g = other
	}
	if !slices.Contains(g.cfg.Methods, req.Method) {
		return Admission{Pass: true}
	}
	if g.cfg.Skip != nil {
		skip, err := g.skips(ctx, req)
		if err != nil {
			return g.refuse(ctx, &req, CodeInternalError, 0, err)
		}
		if skip {
			return Admission{Pass: true}
		}
	}
	return g.admit(ctx, &req, scope)
}

// admit decides about a request whose method is keyed.
func (g *Guard) admit(ctx context.Context, req *Request, scope func() (string, error)) Admission {
	line, lines := g.keyLines(req)
	found := req.Section.flaw(req.HTTP10)
	switch {
	case lines == 0 && found == malformed: // nobody knows whether it has a key (R8)
		return found.closing(g.refuse(ctx, req, CodeRequestInvalid, 0, errFraming))
	case lines == 0 && g.cfg.Required:
		return found.closing(g.refuse(ctx, req, CodeKeyMissing, 0, nil))
	case lines == 0:
		return Admission{Pass: true}
	case lines > 1:
		return found.closing(g.refuseKey(ctx, req, errKeyRepeated))
	}
	key, err := g.grammar.parse(line)
	if err != nil {
		return found.closing(g.refuseKey(ctx, req, err))
	}
	if found != sound {
		return found.closing(g.refuse(ctx, req, CodeRequestInvalid, 0, errFraming))
	}
	principal, err := principalOf(scope)
	if err != nil {
		return g.refuse(ctx, req, codeOf(err, CodeScopeMissing), 0, err)
	}
	if g.runs(ctx, principal, key) {
		return Admission{Pass: true}
	}
	req.cutTarget()
	s := scratches.Get().(*scratch)
	body, code, err := s.readBody(req, g.cfg.MaxRequestBody)
	if code != "" {
		s.free()
		return g.refuse(ctx, req, code, 0, err)
	}
	fingerprint, err := g.fingerprint(req, key, body)
	if err != nil {
		s.free()
		return g.refuse(ctx, req, codeOf(err, CodeRequestInvalid), 0, err)
	}
	res, err := g.engine.Begin(ctx, reprise.Operation{
		Scope: principal, Key: key, Endpoint: g.cfg.Endpoint, Fingerprint: fingerprint,
		Preset: g.cfg.Preset, Retention: g.cfg.Retention, MaxAttempts: g.cfg.MaxAttempts, Wait: g.cfg.Wait,
		FailOpen: g.cfg.FailOpen, Label: g.cfg.Name,
	})
	if err == nil && res.Outcome == reprise.Claimed {
		if res.Attempt.Unprotected() {
			g.counts.unprotected.Add(1)
		}
		x := newExchange(res.Attempt.Context(), g, res.Attempt, s, body) //nolint:contextcheck // the attempt has its own
		if g.cfg.WriteProblem != nil {
			own := *req
			x.request = &own
		}
		return Admission{Exchange: x}
	}
	s.free()
	return g.answer(ctx, req, res, err)
}

// runs reports whether ctx belongs to a run of the operation itself: the middleware is
// twice in the chain, and must not wait for itself.
func (g *Guard) runs(ctx context.Context, principal, key string) bool {
	view, inside := reprise.AttemptFrom(ctx)
	return inside && ctx.Err() == nil && view.ID() == reprise.DeriveID(principal, g.cfg.Endpoint, key)
}

// keyLines returns the first field line that carries a key, under any of the names, and
// how many there are.
func (g *Guard) keyLines(req *Request) (line string, n int) {
	values := req.values(g.cfg.Header)
	n = len(values)
	if n > 0 {
		line = values[0]
	}
	for _, alias := range g.cfg.Aliases {
		if values := req.values(alias); len(values) > 0 {
			line, n = values[0], n+len(values)
		}
	}
	return line, n
}

// answer is the table of what a client gets if the handler does not run.
func (g *Guard) answer(ctx context.Context, req *Request, res reprise.Result, err error) Admission {
	switch {
	case errors.Is(err, reprise.ErrCorrupt):
		return g.refuse(ctx, req, CodeRecordCorrupt, 0, err)
	case err != nil:
		return g.refuse(ctx, req, CodeStoreUnavailable, retryStore, err)
	}
	switch res.Outcome {
	case reprise.Completed:
		return Admission{Response: g.replay(ctx, req, res.Payload)}
	case reprise.InProgress:
		return Admission{Response: g.problem(ctx, req, CodeInProgress, retryRunning)}
	case reprise.Mismatch:
		return Admission{Response: g.problem(ctx, req, CodeKeyReused, 0)}
	default: // Lapsed; Claimed never gets here
		return Admission{Response: g.problem(ctx, req, CodeOutcomeUnknown, 0)}
	}
}

// refuse answers a request that the engine did not answer, and reports it.
func (g *Guard) refuse(ctx context.Context, req *Request, code Code, retryAfter time.Duration, err error) Admission {
	g.report(ctx, reprise.EventRefused, code, err)
	return Admission{Response: g.problem(ctx, req, code, retryAfter)}
}

// refuseKey refuses a request for its key.
func (g *Guard) refuseKey(ctx context.Context, req *Request, err error) Admission {
	g.report(ctx, reprise.EventRefused, CodeKeyInvalid, err)
	return Admission{Response: g.write(ctx, req, g.problems.ofKey(err))}
}

// report notifies the engine's observer of something that the engine did not see.
func (g *Guard) report(ctx context.Context, kind reprise.EventKind, code Code, err error) {
	g.engine.Report(ctx, reprise.Event{Kind: kind, Label: g.cfg.Name, Reason: string(code), Err: err})
}
