package draws

import (
	"fmt"
	"net/http"
	"slices"
)

// end is the end of a run, and so of its retry.
type end string

const (
	kept        end = "kept"        // one run; the retry is the replay
	released    end = "released"    // the retry runs, and is answered as bare
	unavailable end = "unavailable" // one run; the retry gets 409 result-unavailable
	emptied     end = "emptied"     // one run; the retry gets an empty 500
	omitted     end = "omitted"     // one run; the retry gets a summary
	rolledBack  end = "rolled back" // 500 response-too-large, and the retry runs
)

// endOf is the table of the ends. The response that the client got is the truth (A1),
// and panics and hijacks are facts about it.
func endOf(f *Framework, d *Draw, o *outcome) end {
	once, first := d.Policy == AtMostOnce, &o.first
	cut := first.broken || o.panicked || o.hijacked || isProblem(first, "not-applied")
	long := len(first.plain()) > BodyLimit
	if d.Has(d.Inside, f.Coders...) { // the layer may have compressed it, unless one outside keeps it from that
		long = long && o.again.fields["Idempotency-Body"] != nil
	}
	switch status := first.status; {
	case isProblem(first, "response-too-large") && len(o.bare.plain()) > BodyLimit && d.Policy == Transactional:
		return rolledBack // R35: effects do not commit with a body that cannot be kept
	case cut && !once:
		return released // R33: a panic, an abort, a length that was not met, a hijack
	case o.panicked && (!d.Begins() || len(d.Inside) > 0) && o.again.status == http.StatusInternalServerError:
		return emptied // R33, at most once; a layer inside may hold a response back, or begin one on its way out
	case cut:
		return unavailable // R33, at most once
	case slices.Contains([]int{401, 407, 425, 429}, status):
		return released // R31: nothing was processed
	case !once && (status >= 500 || slices.Contains([]int{307, 308, 408}, status)):
		return released // R18, R31: by the preset
	case long:
		return omitted // R35
	default:
		return kept
	}
}

// Answer says which response differs.
type Answer string

// The responses that are compared.
const (
	First Answer = "first" // with bare
	Retry Answer = "retry" // with the replay of the first, or with bare
)

// Difference is a documented one.
type Difference struct {
	Rule    string
	Answer  Answer   // empty for both
	Fields  []string // that may differ, or "status", "body", "framing", "trailers", "informs", "broken", "extra"; empty for all
	Applies func(d *Draw, s *Seen) bool

	// Ends says that the end of the run may differ, too: the response that the client got
	// is not the adapter's.
	Ends bool
}

// Seen has the facts about a draw and its outcome.
type Seen struct {
	Bare               http.Header
	Panicked, Hijacked bool
	Status             int // of the first response
	Kept               bool
	Outer, Inner       bool // a layer that compresses stands outside, inside
	Lazy               bool // a layer outside, or the host, takes the header when the handler has returned
	Blind              bool // a layer, or the host, takes a 1xx for the status
}

// general are the documented differences of all frameworks.
var general = []Difference{
	{
		Rule:    "R33: what a panic leaves of a response that was held back is not sent; the recovery outside answers with the header as it was",
		Applies: func(_ *Draw, s *Seen) bool { return s.Panicked },
	},
	{
		Rule:    "R33: a response that was held back is sent as a whole before its connection is taken, or not at all over a transactional guard",
		Applies: func(d *Draw, s *Seen) bool { return s.Hijacked && len(d.Steps) > 1 },
	},
	{
		Rule: "R33: over a transactional guard a success that was cut short is 503 not-applied", Fields: []string{"broken"},
		Applies: func(d *Draw, _ *Seen) bool { return d.Policy == Transactional },
	},
	{
		Ends: true, Rule: "R33: a declared length is the adapter's to enforce, also where a layer outside takes it away, or HTTP/2 breaks off what is longer",
		Applies: func(d *Draw, s *Seen) bool { return d.Does("length", "file") && (s.Outer || s.Lazy || d.Proto == "2") },
	},
	{
		Rule:    "R33: net/http copies beyond a declared length, into the next response; the adapter refuses what is beyond",
		Applies: func(d *Draw, _ *Seen) bool { return d.Does("length", "file") && d.copies() },
	},
	{
		Rule:    "R17: a layer outside that compresses makes a body short enough to be sent without its trailers",
		Fields:  []string{"trailers", "Trailer"},
		Applies: func(_ *Draw, s *Seen) bool { return s.Outer },
	},
	{
		Rule: "R17: a replay whose header is taken late has no trailer among its fields, not even where the handler set both", Answer: Retry, Fields: []string{"X-Sum", "X-End"},
		Applies: func(d *Draw, s *Seen) bool {
			return (s.Bare["X-Sum"] != nil || s.Bare["X-End"] != nil) && d.Does("announce", "prefixed")
		},
	},
	{
		Rule:   "R16: a body that a layer outside compresses has its media type guessed before",
		Fields: []string{"Content-Type", "Content-Encoding", "Vary", "Etag", "framing", "Content-Length"},
		Applies: func(d *Draw, s *Seen) bool {
			return s.Outer && (d.Does("write", "string", "copy", "stream") || d.setsLate())
		},
	},
	{
		Rule:   "R16: a body that its status does not allow is refused before a layer outside compresses it",
		Fields: []string{"Content-Encoding", "Vary", "framing", "Content-Length"},
		Applies: func(_ *Draw, s *Seen) bool {
			return s.Outer && (s.Status == http.StatusNoContent || s.Status == http.StatusNotModified)
		},
	},
	{
		Rule: "R16: a body that its status does not allow is refused, also below a layer that would take it, so that the handler gets an error", Ends: true,
		Applies: func(_ *Draw, s *Seen) bool {
			return s.Lazy && (s.Status == http.StatusNoContent || s.Status == http.StatusNotModified)
		},
	},
	{
		Rule:   "R12: the header of a handler that writes nothing is written for it, so that layers outside see it",
		Fields: []string{"Content-Type", "Content-Encoding", "Vary", "framing", "Content-Length", "X-Hook"},
		Applies: func(d *Draw, _ *Seen) bool {
			return len(d.Outside) > 0 && !d.Does("write", "string", "now", "json", "text", "empty", "file", "stream", "refuse", "abortjson") && !d.copiesSome()
		},
	},
	{
		Rule:   "R32: an error, or a panic recovered inside, becomes its response below the adapter, and layers outside treat it as any other",
		Fields: []string{"Content-Encoding", "Vary", "framing", "Content-Length", "Etag"},
		Applies: func(d *Draw, _ *Seen) bool {
			return len(d.Outside) > 0 && d.Does("fail", "error", "panic")
		},
	},
	{
		Rule: "R34: over a transactional guard a flush sends nothing", Fields: []string{"framing", "Content-Length", "trailers", "Trailer"},
		Applies: func(d *Draw, _ *Seen) bool { return d.Policy == Transactional && d.Does("flush", "stream") },
	},
	{
		Rule: "R12: a response that is held back is written at once, where net/http sends the header of one that is copied early (from 512 bytes on)", Fields: []string{"framing", "Content-Length", "trailers", "Trailer"},
		Applies: func(d *Draw, _ *Seen) bool { return d.copies() },
	},
	{
		Ends: true, Rule: "R13: the header is what it was when the handler wrote it; a layer outside that takes it when the handler has returned takes later fields, too",
		Applies: func(d *Draw, s *Seen) bool { return s.Lazy && d.setsLate() },
	},
	{
		Ends: true, Rule: "R17: 1xx are not replayed, and a layer outside that takes one for the status answers otherwise without",
		Applies: func(d *Draw, s *Seen) bool { return s.Blind && d.Does("inform") },
	},
	{
		Rule: "R14: the length of a replay is declared, or its trailers are", Answer: Retry, Fields: []string{"framing", "Content-Length", "Trailer"},
		Applies: func(_ *Draw, s *Seen) bool { return s.Kept },
	},
}

// documented reports whether a difference of the field is in the tables, or one in the
// end of the run for which field is empty.
func documented(f *Framework, d *Draw, o *outcome, e end, which Answer, field string) bool {
	stands := func(names []string) bool { return d.Has(d.Outside, names...) || slices.Contains(names, d.Host) }
	seen := &Seen{
		Bare: o.bare.fields, Panicked: o.panicked, Hijacked: o.hijacked, Status: o.first.status, Kept: e == kept,
		Outer: d.Has(d.Outside, f.Coders...), Inner: d.Has(d.Inside, f.Coders...), Lazy: stands(f.Lazy), Blind: stands(f.Blind) || d.Has(d.Inside, f.Blind...),
	}
	return slices.ContainsFunc(slices.Concat(general, f.Documented), func(x Difference) bool {
		return (field == "" && x.Ends || field != "" && (x.Answer == "" || x.Answer == which) && (x.Fields == nil || slices.Contains(x.Fields, field))) && x.Applies(d, seen)
	})
}

// check returns the mistakes in an outcome.
func check(f *Framework, d *Draw, o outcome) (found []string) {
	e := endOf(f, d, &o)
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	expect := func(which Answer, got, want answer) {
		for _, x := range differences(&got, &want) {
			if !documented(f, d, &o, e, which, x.field) {
				say("%s (%s): %s", which, e, x.text)
			}
		}
	}
	if e != rolledBack {
		expect(First, o.first, o.bare)
	}
	if documented(f, d, &o, e, "", "") {
		return found
	}
	runs, committed := int64(1), int64(0)
	switch e {
	case kept:
		expect(Retry, o.again, replayOf(f, d, &o.first))
		if d.Policy == Transactional && o.first.status < 400 {
			committed = 1
		}
	case omitted:
		if o.again.status != o.first.status || !slices.Equal(o.again.fields["Idempotency-Body"], []string{"omitted"}) {
			say("retry: %s, want a summary with status %d", &o.again, o.first.status)
		}
	case unavailable:
		if !isProblem(&o.again, "result-unavailable") {
			say("retry: %s, want 409 result-unavailable", &o.again)
		}
	case emptied:
		if o.again.status != http.StatusInternalServerError {
			say("retry: %s, want 500", &o.again)
		}
	case rolledBack:
		runs = 2
		if !isProblem(&o.again, "response-too-large") {
			say("retry: %s, want 500 response-too-large", &o.again)
		}
	case released:
		runs = 2
		expect(Retry, o.again, o.bare)
	}
	if o.runs != runs {
		say("%d runs, want %d (%s)", o.runs, runs, e)
	}
	if d.Policy == Transactional && o.committed != committed {
		say("%d effects committed, want %d (%s)", o.committed, committed, e)
	}
	return found
}
