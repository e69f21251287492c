package protocol

import (
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Code names the reason why the middleware answered instead of the handler. Client
// programs branch on it.
type Code string

// The codes. [Code.Problem] says when each is given, and docs/reference/problems.md
// explains them to clients.
const (
	CodeKeyMissing        Code = "key-missing"
	CodeKeyInvalid        Code = "key-invalid"
	CodeRequestInvalid    Code = "request-invalid"
	CodeScopeMissing      Code = "scope-missing"
	CodeInProgress        Code = "in-progress"
	CodeOutcomeUnknown    Code = "outcome-unknown"
	CodeResultUnavailable Code = "result-unavailable"
	CodeResultExpired     Code = "result-expired"
	CodeRequestTooLarge   Code = "request-too-large"
	CodeKeyReused         Code = "key-reused"
	CodeStoreUnavailable  Code = "store-unavailable"
	CodeNotApplied        Code = "not-applied"
	CodeRecordCorrupt     Code = "record-corrupt"
	CodeResponseTooLarge  Code = "response-too-large"
	CodeInternalError     Code = "internal-error"
)

// Problem is a response of the middleware, in the terms of RFC 9457 and of gRPC. It
// contains no data from the request.
type Problem struct {
	Code       Code
	Status     int             // of HTTP
	GRPC       uint32          // the status code of gRPC and Connect
	Outcome    reprise.Outcome // that the request is counted as; 0: one that other responses have too
	Title      string          // the same for every problem of the code
	Type       string          // a URI, the base of the guard's configuration followed by the code
	When       string          // a sentence for documents: when the code is given
	Detail     string          // a sentence or two for a person
	Retryable  bool            // whether the same request with the same key may succeed later
	RetryAfter time.Duration   // how long the client should wait before; 0: the response does not say
}

// problemRow is a problem whose Type is not set, and whose Detail has "{source}" for the
// place of the key, such as "Idempotency-Key header", and "{key}" for the key itself.
type problemRow struct {
	Problem

	only func(*Guard) bool // which guards answer with the code; nil: all
}

// problemTable has every code. Every other statement about a code comes from here, or is
// compared with it: the responses of HTTP and of RPC, the outcomes of requests,
// contracts, suites, the client and docs/reference/problems.md.
var problemTable = [...]problemRow{
	{
		Problem: Problem{
			Code: CodeKeyMissing, Status: 400, GRPC: grpcInvalidArgument, Outcome: reprise.KeyMissing, Title: "Idempotency key missing",
			When:   "The policy requires a key, and the request has none.",
			Detail: "This operation requires the {source}. Nothing was run.",
		},
		only: func(g *Guard) bool { return g.cfg.Required && g.cfg.Key.origin != ofContent },
	},
	{Problem: Problem{
		Code: CodeKeyInvalid, Status: 400, GRPC: grpcInvalidArgument, Outcome: reprise.KeyInvalid, Title: "Idempotency key invalid",
		When:   "The key is malformed or too long, or there is more than one.",
		Detail: "The {source} is not a valid key. Nothing was run.",
	}},
	{Problem: Problem{
		Code: CodeRequestInvalid, Status: 400, GRPC: grpcInvalidArgument, Outcome: reprise.RequestInvalid, Title: "Invalid request",
		When:   "The request could not be read in full, its framing is ambiguous, or the policy could not understand it.",
		Detail: "The request could not be read in full or understood. Nothing was run, and the {key} was not used.",
	}},
	{Problem: Problem{
		Code: CodeScopeMissing, Status: 403, GRPC: grpcPermissionDenied, Outcome: reprise.ScopeMissing, Title: "Caller unknown",
		When:   "The server could not tell which caller the key belongs to.",
		Detail: "The {key} could not be attributed to an authenticated caller. Nothing was run.",
	}},
	{Problem: Problem{
		Code: CodeInProgress, Status: 409, GRPC: grpcAborted, Outcome: reprise.InProgress, Title: "Request in progress",
		When:   "An earlier request with the key is still running.",
		Detail: "The first request with this {key} is still running. Retry with the same {key} to get its response.",

		Retryable: true, RetryAfter: retryRunning,
	}},
	{Problem: Problem{
		Code: CodeOutcomeUnknown, Status: 409, GRPC: grpcFailedPrecondition, Outcome: reprise.Lapsed, Title: "Outcome unknown",
		When:   "An earlier request with the key stopped before its result was recorded, and the policy does not run it again; or a handler said that the outcome is unknown, ran for too long, or ended its transaction.",
		Detail: "The outcome of an earlier request with this {key} is unknown. It may have taken effect, and will not run again.",
	}},
	{Problem: Problem{
		Code: CodeResultUnavailable, Status: 409, GRPC: grpcFailedPrecondition, Title: "Result unavailable",
		When:   "The first request with the key ran, and its response was not kept or has been lost.",
		Detail: "The first request with this {key} ran, but its response was not kept. The operation will not run again.",
	}},
	{
		Problem: Problem{
			Code: CodeResultExpired, Status: 409, GRPC: grpcFailedPrecondition, Outcome: reprise.Expired, Title: "Result expired",
			When:   "The first request with the key ran, and the retention of its response has ended.",
			Detail: "The first request with this {key} ran, and its response is no longer kept. The operation will not run again.",
		},
		only: func(g *Guard) bool { return g.cfg.Horizon > 0 },
	},
	{Problem: Problem{
		Code: CodeRequestTooLarge, Status: 413, GRPC: grpcResourceExhausted, Outcome: reprise.TooLarge, Title: "Request too large",
		When:   "The body of a request with a key is over the limit.",
		Detail: "The request body exceeds the limit for requests with the {source}. Nothing was run.",
	}},
	{Problem: Problem{
		Code: CodeKeyReused, Status: 422, GRPC: grpcFailedPrecondition, Outcome: reprise.Mismatch, Title: "Idempotency key reused",
		When:   "The key was used for a different request.",
		Detail: "This {key} was used for a different request. Nothing was run. Use a new {key} for a new request.",
	}},
	{Problem: Problem{
		Code: CodeStoreUnavailable, Status: 503, GRPC: grpcUnavailable, Outcome: reprise.Unavailable, Title: "Store unavailable",
		When:   "The store cannot say whether the operation ran, or its response or the caller cannot be read at the moment.",
		Detail: "The server could not determine whether this {key} was used before. Retry with the same {key}.",

		Retryable: true, RetryAfter: retryStore,
	}},
	{
		Problem: Problem{
			Code: CodeNotApplied, Status: 503, GRPC: grpcUnavailable, Title: "Not applied",
			When:   "The request ran, and all of its changes were rolled back.",
			Detail: "The request ran, and all of its changes were rolled back. Retry with the same {key}.",

			Retryable: true, RetryAfter: retryRunning,
		},
		only: (*Guard).transactional,
	},
	{Problem: Problem{
		Code: CodeRecordCorrupt, Status: 500, GRPC: grpcDataLoss, Outcome: reprise.Corrupt, Title: "Record corrupt",
		When:   "The record of the key cannot be read.",
		Detail: "The record for this {key} cannot be read. Nothing was run.",
	}},
	{
		Problem: Problem{
			Code: CodeResponseTooLarge, Status: 500, GRPC: grpcInternal, Title: "Response too large",
			When:   "The response is too large to be recorded with the changes of the request, so both were rolled back.",
			Detail: "The response is too large to be recorded with its {key}, so all changes of the request were rolled back.",
		},
		only: (*Guard).transactional,
	},
	{Problem: Problem{
		Code: CodeInternalError, Status: 500, GRPC: grpcInternal, Outcome: reprise.Failed, Title: "Internal error",
		When:   "The server failed while it checked the request.",
		Detail: "The server failed while it checked this request and its {key}. Nothing was run.",
	}},
}

func (g *Guard) transactional() bool { return g.cfg.Transactional }

// named returns the problem of a row with its type URI, and with the source of the key in
// its detail.
func (r *problemRow) named(base string, source KeySource) Problem {
	p := r.Problem
	p.Type = base + string(p.Code)
	p.Detail = strings.ReplaceAll(strings.ReplaceAll(p.Detail, "{key}", source.word()), "{source}", source.String())
	return p
}

// Codes returns every code, in the order of docs/reference/problems.md.
func Codes() []Code {
	codes := make([]Code, len(problemTable))
	for i := range problemTable {
		codes[i] = problemTable[i].Code
	}
	return codes
}

// Problem returns a guard's problem for the code, with the default configuration. It is
// the zero value for a code that is not one of the constants.
func (c Code) Problem() Problem {
	for i := range problemTable {
		if r := &problemTable[i]; r.Code == c {
			return r.named(defaultProblemBase, KeySource{})
		}
	}
	return Problem{}
}

// Problems returns every problem that the guard may answer with, as it does, in the order
// of [Codes].
func (g *Guard) Problems() []Problem {
	var list []Problem
	for i := range problemTable {
		if r := &problemTable[i]; r.only == nil || r.only(g) {
			list = append(list, g.problems.of(r.Code))
		}
	}
	return list
}

// codeOfOutcome returns the code for a request whose handler does not run. Without a
// definite result of the store it is store-unavailable.
func codeOfOutcome(outcome reprise.Outcome) Code {
	for i := range problemTable {
		if r := &problemTable[i]; r.Outcome == outcome && outcome != 0 {
			return r.Code
		}
	}
	return CodeStoreUnavailable
}

// How long a client is asked to wait before it tries again. A running request is mostly
// done soon; a store needs a moment to recover.
const (
	retryRunning = time.Second
	retryStore   = 2 * time.Second
	retryLongest = 10 * time.Second
)

// retryInProgress returns how long the client of an operation in progress waits before it
// asks again. Its owner renews the lease in every third of it, so half of it is gone only
// where the owner does not run any more, or cannot reach the store:
//
//	rest of the lease               wait
//	unknown: the owner runs here    1 s
//	more than half                  1 s
//	up to half                      that rest, at least 1 s and at most 10 s
//
// A lease is that of this engine; if another one has shorter leases, its clients wait for
// no more than one of them.
func retryInProgress(rest, lease time.Duration) time.Duration {
	if rest <= 0 || rest > lease/2 {
		return retryRunning
	}
	return min(max(rest, retryRunning), retryLongest)
}
