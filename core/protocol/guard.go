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

// Guard is one policy over one engine. Make it with [New]; its methods are safe for concurrent use.
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
	HeadersTooLarge uint64 // responses whose fields were too many or too long to keep: their retries get 409 result-unavailable
	Unprotected     uint64 // handlers that ran without a claim because FailOpen says so
}

type counts struct{ cookies, headers, unprotected atomic.Uint64 }

// New makes a guard. The error wraps [reprise.ErrInvalid] and names the field of cfg that cannot be.
func New(engine *reprise.Engine, cfg Config) (*Guard, error) {
	if engine == nil {
		return nil, fmt.Errorf("%w: New without an engine", reprise.ErrInvalid)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	fields, err := newFieldPolicy(cfg.KeepHeaders)
	if err != nil {
		return nil, fmt.Errorf("Config.KeepHeaders: %w", err)
	}
	return &Guard{
		engine: engine, cfg: cfg, fields: fields,
		grammar:  keyGrammar{mode: cfg.KeyMode, max: cfg.MaxKeyLength},
		problems: newProblems(cfg.ProblemBase, cfg.Header, cfg.WriteProblem),
	}, nil
}

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

// Admit decides about one request. It checks method, key lines, presence, grammar, scope and body, in this order, and asks the engine
// last. A request that is not keyed costs no allocation, calls no scope function and reads no body.
//
// scope names the authenticated principal that the key belongs to. An error, an empty name, or one with a control byte
// refuses the request with 403; [ErrUnscoped] puts the key in the key space that all clients share. It is called at most
// once, before Admit returns. ctx bounds the wait for another attempt, if the policy waits, and its values are the handler's; see
// [reprise.Engine.Begin].
func (g *Guard) Admit(ctx context.Context, req Request, scope func() (string, error)) Admission {
	if !slices.Contains(g.cfg.Methods, req.Method) {
		return Admission{Pass: true}
	}
	line, lines := g.keyLines(&req)
	switch {
	case lines == 0 && req.Section.flaw(req.HTTP10) == malformed: // whether it has a key is not known (R8)
		return g.refuseAndClose(CodeRequestInvalid)
	case lines == 0 && g.cfg.Required:
		return g.refuse(CodeKeyMissing, 0)
	case lines == 0:
		return Admission{Pass: true}
	case lines > 1:
		return Admission{Response: g.problems.answerKey(errKeyRepeated)}
	}
	key, err := g.grammar.parse(line)
	if err != nil {
		return Admission{Response: g.problems.answerKey(err)}
	}
	if req.Section.flaw(req.HTTP10) != sound {
		return g.refuseAndClose(CodeRequestInvalid)
	}
	principal, err := principalOf(scope)
	if err != nil {
		return g.refuse(CodeScopeMissing, 0)
	}
	if g.runs(ctx, principal, key) {
		return Admission{Pass: true}
	}
	req.cutTarget()
	s := scratches.Get().(*scratch)
	body, wrong := s.readBody(&req, g.cfg.MaxRequestBody)
	if wrong != "" {
		s.free()
		return g.refuse(wrong, 0)
	}
	fingerprint, err := g.fingerprint(&req, key, body)
	if err != nil {
		s.free()
		return g.refuse(CodeRequestInvalid, 0)
	}
	res, err := g.engine.Begin(ctx, reprise.Operation{
		Scope: principal, Key: key, Endpoint: g.cfg.Endpoint, Fingerprint: fingerprint,
		Preset: g.cfg.Preset, Retention: g.cfg.Retention, MaxAttempts: g.cfg.MaxAttempts, Wait: g.cfg.Wait,
		FailOpen: g.cfg.FailOpen,
	})
	if err == nil && res.Outcome == reprise.Claimed {
		if res.Attempt.Unprotected() {
			g.counts.unprotected.Add(1)
		}
		return Admission{Exchange: newExchange(res.Attempt.Context(), g, res.Attempt, s, body)} //nolint:contextcheck // the attempt has its own
	}
	s.free()
	return g.answer(res, err)
}

// runs reports whether ctx is of a run of the operation itself: the middleware stands twice in the chain, and must not wait for
// itself.
func (g *Guard) runs(ctx context.Context, principal, key string) bool {
	view, inside := reprise.AttemptFrom(ctx)
	return inside && ctx.Err() == nil && view.ID() == reprise.DeriveID(principal, g.cfg.Endpoint, key)
}

// keyLines returns the first field line that carries a key, under any of the names, and how many there are.
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

// fingerprint keeps the request of everybody who does not configure a function of their own off the heap.
func (g *Guard) fingerprint(req *Request, key string, body []byte) (reprise.Fingerprint, error) {
	if g.cfg.Fingerprint == nil {
		return DefaultFingerprint(req, key, body)
	}
	own := *req
	return g.cfg.Fingerprint(&own, key, body)
}

// answer is the table of what a client gets that does not run the handler.
func (g *Guard) answer(res reprise.Result, err error) Admission {
	switch {
	case errors.Is(err, reprise.ErrCorrupt):
		return g.refuse(CodeRecordCorrupt, 0)
	case err != nil:
		return g.refuse(CodeStoreUnavailable, retryStore)
	}
	switch res.Outcome {
	case reprise.Completed:
		return Admission{Response: g.replay(res.Payload)}
	case reprise.InProgress:
		return g.refuse(CodeInProgress, retryRunning)
	case reprise.Mismatch:
		return g.refuse(CodeKeyReused, 0)
	default: // Lapsed; Claimed never comes here
		return g.refuse(CodeOutcomeUnknown, 0)
	}
}

func (g *Guard) refuse(code Code, retryAfter time.Duration) Admission {
	return Admission{Response: g.problems.answer(code, retryAfter)}
}

// refuseAndClose refuses a request behind which the bytes of the connection cannot be trusted.
func (g *Guard) refuseAndClose(code Code) Admission {
	refusal := g.refuse(code, 0)
	if _, there := refusal.Response.Header.Get("Connection"); !there {
		fields := []Field{{Name: "Connection", Value: "close"}}
		refusal.Response.Header = Header{fields: slices.AppendSeq(fields, refusal.Response.Header.All())}
	}
	return refusal
}
