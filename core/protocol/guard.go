package protocol

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
	"github.com/reprise-go/reprise/core/store"
)

// Guard is one policy over one engine. [New] makes both, and [Guard.With] another guard
// over the same engine. Its methods are safe for concurrent use.
type Guard struct {
	engine    *reprise.Engine
	owned     bool // New made the engine, for this guard or the one that With began with
	cfg       Config
	retention time.Duration // Config.Retention, or else that of the engine
	given     dependent
	omit      []canonical.Pointer // Config.Fingerprint.Omit
	grammar   keyGrammar
	fields    fieldPolicy
	seals     bool // responses from now on
	offloads  bool // their bodies, if they are long
	problems  problems
	counts    counts
	warned    warnings
	vain      vain
	spools    spool.Files // of first responses
	replays   spool.Files // of replays, so that clients that read slowly take no room from first responses
}

// Stats counts a guard's actions that leave no other trace. The numbers only grow.
type Stats struct {
	DroppedCookies  uint64 // Set-Cookie lines that were not kept (R14)
	HeadersTooLarge uint64 // responses with too many or too long fields to keep: their retries get 409 result-unavailable

	Offloaded    uint64 // bodies that were written to Config.Offload.Blobs
	NotOffloaded uint64 // bodies that were not kept, because they were too large or Config.Offload.Blobs failed: see Offloading
	BlobsLost    uint64 // replays that found their blob missing or damaged: 409 result-unavailable
	BlobsUnread  uint64 // replays whose blob could not be read at the moment: 503 store-unavailable
}

type counts struct {
	cookies, headers                                atomic.Uint64
	offloaded, notOffloaded, blobsLost, blobsUnread atomic.Uint64
}

// Stats returns the counts since the guard was made.
func (g *Guard) Stats() Stats {
	return Stats{
		DroppedCookies:  g.counts.cookies.Load(),
		HeadersTooLarge: g.counts.headers.Load(),
		Offloaded:       g.counts.offloaded.Load(),
		NotOffloaded:    g.counts.notOffloaded.Load(),
		BlobsLost:       g.counts.blobsLost.Load(),
		BlobsUnread:     g.counts.blobsUnread.Load(),
	}
}

// Admission is the decision about a request: exactly one of three.
type Admission struct {
	Pass     bool      // run the handler, untouched
	Body     *Body     // with Pass: the body of the request, if it was read (see KeySource), to put in its place; else nil
	Exchange *Exchange // not nil: run the handler in it
	Response Response  // otherwise: write it; the handler does not run
}

// Admit decides about one request. It makes the checks of docs/engineering/protocol.md,
// R1, in their order, and then asks the engine. A request that is not keyed costs no
// allocation, calls no scope function, and reads no body, unless that is where its key
// would be.
//
// scope names the authenticated principal that the key belongs to. An error, an empty
// name, or one with a control byte refuses the request with 403, and one that wraps
// [store.ErrUnavailable] with 503, which clients retry; [ErrUnscoped] puts the key in the
// key space that all clients share. It is called at most once, before Admit returns. ctx
// bounds the wait for another attempt, if the policy waits, and its values are the
// handler's; see [reprise.Engine.Begin].
//
// A function of the policy that panics refuses the request with 500 internal-error.
func (g *Guard) Admit(ctx context.Context, req Request, scope func() (string, error)) Admission {
	concerned, err := g.concerns(ctx, &req)
	switch {
	case err != nil:
		return g.refuse(ctx, &req, CodeInternalError, withoutKey(err, ""))
	case !concerned:
		return Admission{Pass: true}
	default:
		return g.admit(ctx, &req, scope)
	}
}

// concerns reports whether the policy concerns a request.
func (g *Guard) concerns(ctx context.Context, req *Request) (bool, error) {
	if !slices.Contains(g.cfg.Methods, req.Method) {
		return false, nil
	}
	if g.cfg.Skip != nil {
		own := *req // so that the request of a guard without such a function stays off the heap
		skip, err := guarded("Config.Skip", func() bool { return g.cfg.Skip(ctx, &own) })
		return err == nil && !skip, err
	}
	return true, nil
}

// admit decides about a request whose method is keyed. Each one that has a key, or that
// it refuses, is counted once: by the engine from Begin on, and by refuse before that.
func (g *Guard) admit(ctx context.Context, req *Request, scope func() (string, error)) Admission {
	line, lines := g.cfg.Key.lines(req)
	elsewhere := lines == 0 && g.cfg.Key.origin != ofHeader // it may have a key in another place
	found := req.Section.flaw(req.HTTP10)
	if lines == 0 && !elsewhere && found != malformed && !g.cfg.Required {
		return Admission{Pass: true}
	}
	checked := false
	defer func() {
		if !checked { // the request's own reader panicked, or something ended the goroutine
			g.count(ctx, CodeInternalError, errUnchecked)
		}
	}()
	op := reprise.Operation{
		Endpoint: g.cfg.Endpoint, Preset: g.cfg.Preset, Retention: g.cfg.Retention, Horizon: g.cfg.Horizon, MaxAttempts: g.cfg.MaxAttempts,
		Wait: g.cfg.Wait, FailOpen: g.cfg.FailOpen, Transactional: g.cfg.Transactional, Label: g.cfg.Label,
	}
	var s *scratch
	var body []byte
	var answer Admission
	if (lines == 1 || elsewhere) && found == sound {
		s, body, answer = g.check(ctx, req, scope, line, lines, &op)
	} else {
		answer = found.closing(g.refuseLines(ctx, req, line, lines))
	}
	checked = true
	if s == nil {
		return answer
	}
	op.Reads = true
	res, _ := g.engine.Begin(ctx, op) // the outcome classifies the error for a client
	if res.Attempt != nil {
		s.fingerprint, s.key = op.Fingerprint, append(s.key[:0], op.Key...)
		x := &Exchange{guard: g, attempt: res.Attempt, scratch: s, body: Body{data: body}, version: req.version()}
		if g.cfg.Problems.Write != nil || req.isCall() {
			own := *req
			x.request = &own
		}
		return Admission{Exchange: x}
	}
	var replay stored
	if res.Outcome == reprise.Replayed {
		replay = g.read(&res, &op)
	}
	s.free()
	return Admission{Response: g.answer(ctx, req, &res, &replay)}
}

var errUnchecked = errors.New("reprise: the request was not checked to its end: its body, or the scope function, ended the goroutine")

// refuseLines refuses a request that has not exactly one sound key line.
func (g *Guard) refuseLines(ctx context.Context, req *Request, line string, lines int) Admission {
	found := req.Section.flaw(req.HTTP10)
	switch {
	case lines == 0 && (found == malformed || found != sound && g.cfg.Key.origin != ofHeader): // it may have a hidden key (R8)
		return g.refuse(ctx, req, CodeRequestInvalid, errFraming)
	case lines == 0:
		return g.refuse(ctx, req, CodeKeyMissing, nil)
	case lines > 1:
		return g.refuseKey(ctx, req, g.cfg.Key.header(), errKeyRepeated)
	}
	if _, err := g.grammar.parse(line); err != nil {
		return g.refuseKey(ctx, req, g.cfg.Key.header(), err)
	}
	return g.refuse(ctx, req, CodeRequestInvalid, errFraming)
}

// read reads the record of a replayed result, which then counts as one, or as corrupt.
func (g *Guard) read(res *reprise.Result, op *reprise.Operation) stored {
	var who *record.SealedFor
	if record.IsSealed(res.Payload) {
		who = &record.SealedFor{ID: store.DeriveID(op.Scope, op.Endpoint, op.Key), Fingerprint: op.Fingerprint, Key: op.Key}
	}
	replay, err := g.decode(res.Payload, who)
	_ = res.Read(replay.Annotation, err) // likewise
	return replay
}

// answer returns the client's response if the handler does not run. The engine has
// counted it.
func (g *Guard) answer(ctx context.Context, req *Request, res *reprise.Result, replay *stored) Response {
	if res.Outcome == reprise.Replayed {
		return g.replay(ctx, req, replay, req.version())
	}
	if res.Outcome == reprise.InProgress {
		if wait := retryInProgress(res.Remaining, g.engine.Config().Lease); wait != retryRunning {
			p := g.problems.of(CodeInProgress)
			p.RetryAfter = wait
			return g.write(ctx, req, p)
		}
	}
	return g.problem(ctx, req, codeOfOutcome(res.Outcome))
}

// refuse answers a request before Begin, and counts it.
func (g *Guard) refuse(ctx context.Context, req *Request, code Code, err error) Admission {
	g.count(ctx, code, err)
	return Admission{Response: g.problem(ctx, req, code)}
}

// refuseKey refuses a request for its key in a place, which is a noun.
func (g *Guard) refuseKey(ctx context.Context, req *Request, place string, err error) Admission {
	g.count(ctx, CodeKeyInvalid, err)
	return Admission{Response: g.write(ctx, req, g.problems.ofKey(place, err))}
}

// stored is a response as a record keeps it.
type stored = record.Response[Field]

// scratch is the memory of an exchange, reused by later ones.
type scratch struct {
	request   []byte    // the request's body
	response  []byte    // the response's body
	head      []byte    // the start of one that has left the memory, for Config.Keep.Decide
	payload   []byte    // its encoded form
	outer     []Field   // the header when the handler started
	places    []*string // where the outer values are, see appendPlaces
	set       []string  // the outer fields that the handler set, maybe to the same values
	committed []Field   // the header when the handler wrote it
	changed   []Field   // the difference of the two
	kept      []Field   // and the kept ones of them
	trailers  []Field   // the handler's fields to send after the body
	encoded   []byte    // the response's encoded form, before it is sealed
	key       []byte    // the client's key, of a request that runs

	fingerprint store.Fingerprint // of the request with that response
}

// decode reads the payload of a record of the operation that it may be sealed for.
func (g *Guard) decode(payload []byte, who *record.SealedFor) (stored, error) {
	encoded, err := g.cfg.Seal.open(payload, who)
	if err != nil {
		return stored{}, err
	}
	return record.Decode[Field](encoded)
}

// largestScratch is the largest buffer that is reused. The collector frees larger ones,
// so that a few large bodies do not hold memory for ever.
const largestScratch = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// free returns the memory to the pool.
func (s *scratch) free() {
	*s = scratch{
		request: again(s.request), response: again(s.response), head: again(s.head), payload: again(s.payload),
		outer: emptied(s.outer), committed: emptied(s.committed), changed: emptied(s.changed), kept: emptied(s.kept),
		places: emptied(s.places), set: emptied(s.set),
		trailers: emptied(s.trailers), encoded: wiped(s.encoded), key: wiped(s.key),
	}
	scratches.Put(s)
}

// again returns the memory of b for reuse, or nil if there is too much of it.
func again(b []byte) []byte {
	if cap(b) > largestScratch {
		return nil
	}
	return b[:0]
}

// emptied returns the memory of list without its references.
func emptied[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// wiped returns the memory of b for reuse without its content, or nil if it is too large.
func wiped(b []byte) []byte {
	clear(b[:cap(b)])
	return again(b)
}
