package scores

import "slices"

// Peer is another idempotency middleware, with the claims of its documentation and notes
// for readers of its score.
type Peer struct {
	Name   string
	Link   string
	Wiring string   // of the judged service
	Claims []string // of its documentation, in our words
	Notes  []string // choices that its documentation offers, and reasons that many cases share
}

// Peers are the judged ones.
var Peers = []Peer{
	{
		Name: "Fiber v2's own", Link: "https://github.com/gofiber/fiber/blob/v2.52.15/docs/api/middleware/idempotency.md",
		Wiring: "`idempotency.New` with its defaults, but for `KeyHeader: \"Idempotency-Key\"`; records are in memory.",
		Claims: []string{
			"Duplicate requests do not cause the same action more than once on the server.",
			"It refers to version 02 of the draft for a better understanding, and claims no conformance.",
		},
		Notes: []string{
			"Keys must have 36 characters by default, the length of a UUID. `KeyHeaderValidate` replaces the rule, with one that takes quoted keys for example.",
			"`Storage` takes a store that processes share. `Lock` is in memory unless it is replaced, too.",
			"The release of fasthttp that it requires leaves spaces at the end of a field value: key/spaces is about that server as well.",
		},
	},
	{
		Name: "Fiber v3's own", Link: "https://github.com/gofiber/fiber/blob/v3.5.0/docs/middleware/idempotency.md",
		Wiring: "`idempotency.New` with its defaults, but for `KeyHeader: \"Idempotency-Key\"`; records are in memory.",
		Claims: []string{
			"Duplicate requests, retries after a network failure for example, do not trigger the same action twice.",
			"It says which methods are safe and which are idempotent, by RFC 7231, and skips the safe ones. It claims no conformance to the draft.",
		},
		Notes: []string{"As with v2, keys have 36 characters by default, and `KeyHeaderValidate`, `Storage` and `Lock` may be replaced."},
	},
	{
		Name: "@node-idempotency/nestjs", Link: "https://www.npmjs.com/package/@node-idempotency/nestjs",
		Wiring: "The module and the decorator `@Idempotent()` on the handler, which returns strings and objects and throws `HttpException`. This is the author's own wiring of `@node-idempotency/core`.",
		Claims: []string{
			"It is free of races: concurrent requests behave consistently.",
			"It is \"RFC compliant\", with a link to the draft.",
		},
		Notes: []string{
			"`keyMaxLength`, `enforceIdempotency` and `inProgressStrategy` (wait instead of 409) are options.",
			"Handlers of NestJS return values, so the service cannot answer with arbitrary bytes, and replay/bytes is not shown.",
		},
	},
	{
		Name: "express-idempotency", Link: "https://www.npmjs.com/package/express-idempotency",
		Wiring: "`app.post('*', idempotency())` after `express.json()`, and `isHit` in the handler; with Redis `app.use`, as the adapter's README shows.",
		Claims: []string{
			"It is inspired by Stripe's implementation.",
			"A key that comes back with another URL, method, query or body is a misuse and gives an error.",
			"The store in memory is not for production. Its list of adapters has one for MongoDB; express-idempotency-redis-adapter is by another author.",
		},
		Notes: []string{
			"Only answers 200 to 299 are kept by default. A `responseValidator` replaces the rule, so replay/status (a 303) and failures/4xx are matters of configuration.",
			"The profile `stripe` is judged because its documentation names Stripe; it does not claim to keep 500s.",
		},
	},
	{
		Name: "idempotency-backend", Link: "https://www.npmjs.com/package/idempotency-backend",
		Wiring: "`app.use(IdempotencyExpress)`, and `SaveResponse` in the handler before it responds.",
		Claims: []string{
			"It handles repeated requests idempotently, and names payments as a place to use it.",
			"A repeated request is answered 200 with `{\"cached\":true,…}`: its test example shows that. Without a key, the method and the URL are the key.",
		},
		Notes: []string{
			"That documented form of a replay is not the first answer: each case that compares the two fails for this one reason.",
			"Its records are in one JSON file; the README suggests to replace the store.",
		},
	},
}

// Limit is a documented limit of a store of ours, for which the judge counts a case as
// not met.
type Limit struct {
	Variants []string
	ID       string
	Reason   string
}

// Limits are those of the transactional stores.
var Limits = []Limit{
	{
		[]string{"postgres-tx", "mysql-tx", "sqlite-tx"},
		"large/huge",
		"A transactional store commits an answer with the work. It rolls both back when the answer is above the limit, and [answers 500](../reference/problems.md#response-too-large): nothing ran, and there is no first answer to replay.",
	},
	{
		[]string{"sqlite-tx"},
		"concurrency/others",
		"[SQLite has one writer](../operate/sqlite.md), and a transaction is that writer until its commit: another key waits, and gets 503 in the end.",
	},
}

// Limited reports whether a case is a documented limit of a variant of ours.
func Limited(variant, id string) bool {
	return slices.ContainsFunc(Limits, func(l Limit) bool { return l.ID == id && slices.Contains(l.Variants, variant) })
}

// NotJudged are the candidates that could not be had, or are something else. They were
// looked for on the date in the reason.
var NotJudged = []Left{
	{"@idempot/express-middleware and its siblings (idempot-js)", refused},
	{"hono-idempotency", refused},
	{"hono-idempotent-request", refused + " Its README says that it is not published yet."},
	{"@nestarc/idempotency", refused},
	{"@node-idempotency/express and @node-idempotency/fastify", refused + " The same core is judged through its package for NestJS."},
	{"express-idempotency-mongo-adapter", "It needs MongoDB, which these machines do not have. Its core is judged over memory and Redis."},
	{"@aws-lambda-powertools/idempotency", "It wraps functions of AWS Lambda and is no HTTP middleware: the service around it would be ours."},
	{"github.com/velmie/idempo", refusedModule},
	{"github.com/repenguin22/idemlease", refusedModule + " [Its speed](benchmarks.md) is that of a build of its repository."},
	{"github.com/bright-room/idem", refusedModule},
	{"github.com/AnandSundar/go-idempotency", refusedModule},
	{"github.com/eben-vranken/idempo", refusedModule},
	{"github.com/goceleris/celeris (middleware/idempotency)", refusedModule},
	{"github.com/furkandeveloper/idempotency-middleware", refusedModule},
	{"github.com/VarthanV/gin-idempotency", refusedModule},
	{"github.com/pwnedgod/idemgotent", refusedModule},
	{"github.com/LarsArtmann/go-idempotency", refusedModule},
	{"github.com/arun0009/idempotent", refusedModule},
}

const (
	refused       = "The npm registry of these machines did not serve it on 2026-11-23."
	refusedModule = "The module proxy of these machines did not serve it on 2026-11-23."
)
