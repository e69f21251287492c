package draws

import (
	"net/http"
	"slices"
)

// FiberOps are the steps that both releases of Fiber have.
var FiberOps = []string{
	"set", "add", "del", "status", "write", "string", "copy", "length", "announce", "trailer", "json", "text", "empty", "redirect", "file", "stream", "sendfile",
	"fail", "error", "panic", "value", "deadline", "background", "reset",
}

// RateFields are the fields of its limiter.
var RateFields = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// FiberDocumented are the differences of both releases, most of which are fasthttp's.
var FiberDocumented = []Difference{
	{
		Rule: "fasthttp breaks off, or never ends, a stream whose length is set later; the adapter sends what it read", Ends: true,
		Applies: func(d *Draw, _ *Seen) bool { return d.Does("stream") && d.Does("length") },
	},
	{
		Rule: "R33: Fiber writes no header, so that a panic after a status without a body leaves no response that was begun", Ends: true,
		Applies: func(d *Draw, s *Seen) bool { return s.Panicked && d.Policy == AtMostOnce },
	},
	{
		Rule: "SendFile takes Accept-Encoding from its request, so that a layer outside compresses the replay and not the first response", Answer: Retry, Fields: []string{"Content-Encoding", "Vary", "Etag", "framing", "Content-Length"},
		Applies: func(d *Draw, s *Seen) bool { return s.Outer && d.Does("sendfile") },
	},
	{
		Ends: true, Rule: "R33: a declared length is the adapter's to enforce, also where a layer outside reads the body and computes its length",
		Applies: func(d *Draw, _ *Seen) bool {
			return d.Has(d.Outside, "etag", "etag.weak") && d.Does("length", "file")
		},
	},
	{
		Rule: "the limiter counts each request that reaches it", Fields: RateFields[1:],
		Applies: func(d *Draw, _ *Seen) bool { return d.Has(slices.Concat(d.Outside, d.Inside), "limiter") },
	},
	{
		Rule: "R16: fasthttp gives a 304 with a length a type, and a replay has no length", Answer: Retry, Fields: []string{"Content-Type"},
		Applies: func(_ *Draw, s *Seen) bool { return s.Status == http.StatusNotModified },
	},
	{
		Rule: "fasthttp takes no length with a stream while the status allows no body, and its response has no end then; the adapter sends one",
		Applies: func(d *Draw, _ *Seen) bool {
			return d.Does("stream", "file", "sendfile") && slices.ContainsFunc(d.Steps, func(s Step) bool { return s.N == http.StatusNoContent || s.N == http.StatusNotModified })
		},
	},
	{
		Rule: "R16: fasthttp gives an empty stream a type, and an empty body none", Fields: []string{"Content-Type"},
		Applies: func(d *Draw, _ *Seen) bool { return d.Does("stream", "file") },
	},
	{
		Rule: "R17: fasthttp sends a trailer that was announced and never set with an empty value, and a replay none", Fields: []string{"trailers"},
		Applies: func(d *Draw, _ *Seen) bool { return d.Does("announce") },
	},
}
