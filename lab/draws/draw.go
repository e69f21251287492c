// Package draws compares a framework's responses with and without its adapter.
//
// A [Draw] is a handler, made of steps, behind layers on either side of the adapter, in a
// host, for one request: all of it follows from a seed. [Run] sends every draw three
// times: without the adapter (bare), with a new key (first), and again with that key
// (retry). First has to equal bare in status, fields, body, framing and trailers, the
// retry has to be the replay of it, and the handler has to run once, except where the
// table in oracle.go says otherwise and why. A difference is reported with its seed and
// the smallest draw that still shows it.
//
// A framework takes part by a [Framework]: the hosts that serve it, the real layers that
// it has, and how it executes a step natively. REPRISE_DRAWS is how many draws Run tries,
// and REPRISE_SEED the seed of the first one.
package draws

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Draw is one program, and the request that it is tried with.
type Draw struct {
	Seed     uint64
	Host     string
	Proto    string // "1.0", "1.1" or "2"
	Encoding string // the Accept-Encoding of the request, empty for none
	Policy   Policy
	Failure  string   // what the error handler of the application answers, see [Failures]
	Outside  []string // layers around the adapter, the outermost first
	Inside   []string // layers between the adapter and the handler
	Steps    []Step
}

// Policy is the guard of a draw.
type Policy string

// The policies, over a store in memory.
const (
	Leased        Policy = "leased"
	AtMostOnce    Policy = "at most once"
	Transactional Policy = "transactional"
)

// Failures are the error handlers of an application: the framework's own, one that
// answers every error with an envelope and 200, and one that redirects.
var Failures = []string{"own", "envelope", "redirect"}

// Step is one statement of a handler.
type Step struct {
	Op          string // a name in [Ops]
	Name, Value string
	N           int
}

// Ops are the steps, each with its weight and the way to draw one. A framework names
// those that it has.
var ops = []struct {
	name   string
	weight int
	draw   func(*rand.Rand) Step
}{
	{"set", 14, field},
	{"add", 10, field},
	{"del", 4, field},
	{"nil", 4, field},
	{"status", 10, func(r *rand.Rand) Step { return Step{N: of(r, statuses...)} }},
	{"now", 4, none},    // writes status and header explicitly (Gin's WriteHeaderNow)
	{"inform", 4, none}, // 103
	{"write", 14, sized},
	{"string", 8, sized},
	{"copy", 6, sized},
	{"flush", 8, none},
	{"length", 4, func(r *rand.Rand) Step { return Step{N: of(r, 0, 0, 0, -1, 1)} }}, // declares the length of all writes, plus N
	{"announce", 4, trailer},
	{"trailer", 4, trailer},
	{"prefixed", 4, trailer},
	{"json", 14, answered},
	{"text", 8, answered},
	{"empty", 4, answered},
	{"redirect", 3, none},
	{"file", 3, sized},
	{"stream", 5, sized},
	{"sendfile", 2, none},      // of the file system
	{"report", 6, none},        // an error beside the response (Gin's c.Error)
	{"abort", 4, none},         // the chain, and nothing else
	{"abortjson", 4, answered}, // the chain, with a response (Gin's AbortWithStatusJSON)
	{"refuse", 5, answered},    // the framework's own way to answer an error
	{"value", 5, none},
	{"deadline", 4, none},
	{"background", 4, none},
	{"request", 3, none},  // another context for what follows
	{"reset", 2, none},    // of the values of the request (Fiber)
	{"fail", 6, answered}, // returns the framework's error with a status: the handler ends
	{"error", 3, none},    // returns a plain error
	{"panic", 3, none},
	{"cut", 2, none},
	{"hijack", 1, none}, // the handler ends
}

// ends are the steps after which the handler does nothing.
var ends = []string{"fail", "error", "panic", "cut", "hijack"}

var (
	names    = []string{"X-A", "X-B", "Vary", "Content-Type", "Location", "Cache-Control", "Etag", "Content-Language", "Content-Encoding", "Set-Cookie", "Link"}
	values   = []string{"1", "2", "text/plain", "application/json", "identity", "", "Accept-Encoding", "a, b"}
	statuses = []int{200, 200, 201, 201, 202, 204, 303, 304, 307, 400, 401, 404, 409, 500, 503}
	// Around what servers hold back (512, 2 KiB, 4 KiB), what layers compress from, and
	// the limit.
	sizes = []int{0, 1, 7, 7, 7, 100, 511, 513, 1500, 2047, 2048, 2049, 4095, 4097, BodyLimit, BodyLimit + 1, 20_000}
)

// BodyLimit is Limits.ResponseBody of every guard here.
const BodyLimit = 8 << 10

func of[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func none(*rand.Rand) Step    { return Step{} }
func field(r *rand.Rand) Step { return Step{Name: of(r, names...), Value: of(r, values...)} }
func sized(r *rand.Rand) Step {
	return Step{N: of(r, sizes...), Value: of(r, "text", "html", "binary")}
}

func trailer(r *rand.Rand) Step {
	return Step{Name: of(r, "X-Sum", "X-Sum", "X-End"), Value: of(r, "abc", "def")}
}
func answered(r *rand.Rand) Step { return Step{N: of(r, statuses...)} }

// unknown returns the steps of a framework that no draw has.
func unknown(f *Framework) []string {
	return slices.DeleteFunc(slices.Clone(f.Ops), func(name string) bool {
		for _, op := range ops {
			if op.name == name {
				return true
			}
		}
		return false
	})
}

// New returns the draw of a seed.
func New(f *Framework, seed uint64) Draw {
	r := rand.New(rand.NewPCG(seed, 21)) //nolint:gosec // to be repeated
	host := of(r, f.Hosts...)
	d := Draw{
		Seed: seed, Host: host.Name, Proto: of(r, host.Protos...), Encoding: of(r, "", "gzip"),
		Failure: "own",
	}
	d.Policy = of(r, Leased, Leased, AtMostOnce, Transactional)
	if f.Leased && d.Policy == Transactional {
		d.Policy = Leased
	}
	if slices.Contains(f.Ops, "fail") {
		d.Failure = of(r, Failures...)
	}
	layers := func() (all []string) {
		for range of(r, 0, 0, 1, 1, 2) {
			all = append(all, of(r, f.Layers...))
		}
		return all
	}
	d.Outside, d.Inside = layers(), layers()
	total := 0
	for _, op := range ops {
		if slices.Contains(f.Ops, op.name) {
			total += op.weight
		}
	}
	for range r.IntN(8) {
		n := r.IntN(total)
		for _, op := range ops {
			if !slices.Contains(f.Ops, op.name) {
				continue
			}
			if n -= op.weight; n < 0 {
				s := op.draw(r)
				s.Op = op.name
				d.Steps = append(d.Steps, s)
				break
			}
		}
		if d.Does(ends...) {
			break
		}
	}
	return d
}

// Total is the number of bytes that the handler writes itself.
func (d *Draw) Total() (n int) {
	for _, s := range d.Steps {
		switch s.Op {
		case "write", "string", "copy":
			n += s.N
		}
	}
	return n
}

// Has reports whether one of the layers called names stands in where.
func (d *Draw) Has(where []string, names ...string) bool {
	return slices.ContainsFunc(where, func(s string) bool { return slices.Contains(names, s) })
}

// Does reports whether the handler has one of the steps.
func (d *Draw) Does(names ...string) bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool { return slices.Contains(names, s.Op) })
}

// Begins reports whether the handler certainly begins a response of its own.
func (d *Draw) Begins() bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool {
		switch s.Op {
		case "write", "string", "copy", "stream", "file":
			return s.N > 0
		default:
			return slices.Contains([]string{"now", "json", "text", "refuse", "abortjson"}, s.Op)
		}
	})
}

// copiesSome reports whether the handler copies at least one byte.
func (d *Draw) copiesSome() bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool { return s.Op == "copy" && s.N > 0 })
}

// copies reports whether the handler copies so much that net/http sends the header early.
func (d *Draw) copies() bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool {
		return (s.Op == "copy" || s.Op == "file") && (s.N >= 512 || d.Does("flush", "stream"))
	})
}

// setsLate reports whether the handler sets fields after a step that wrote the header.
func (d *Draw) setsLate() bool {
	wrote := false
	for _, s := range d.Steps {
		switch s.Op {
		case "set", "add", "del", "nil", "length", "announce", "trailer", "prefixed", "inform":
			if wrote {
				return true
			}
		case "status", "json", "text", "empty", "redirect", "file", "refuse", "abortjson", "fail", "error":
			if wrote {
				return true
			}
			wrote = true
		default:
			wrote = true
		}
	}
	return false
}

// String returns the draw as a program.
func (d Draw) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "host %s, HTTP/%s, %s, errors answered by %s", d.Host, d.Proto, d.Policy, d.Failure)
	if d.Encoding != "" {
		fmt.Fprintf(&b, ", accepts %s", d.Encoding)
	}
	fmt.Fprintf(&b, "\n\toutside: %s\n\tinside:  %s\n\thandler:", strings.Join(d.Outside, ", "), strings.Join(d.Inside, ", "))
	for _, s := range d.Steps {
		fmt.Fprintf(&b, " %s;", s)
	}
	return b.String()
}

// String returns the step as a statement.
func (s Step) String() string {
	switch {
	case s.Op == "del" || s.Op == "nil" || s.Op == "announce":
		return s.Op + " " + s.Name
	case s.Name != "":
		return fmt.Sprintf("%s %s: %q", s.Op, s.Name, s.Value)
	case s.Value != "":
		return fmt.Sprintf("%s %d of %s", s.Op, s.N, s.Value)
	case s.N != 0 || s.Op == "length":
		return fmt.Sprintf("%s %d", s.Op, s.N)
	default:
		return s.Op
	}
}

// Body returns N bytes of the kind that Value names.
func (s Step) Body() string {
	start := map[string]string{"html": "<html><body>", "binary": "\x00\xff\x01", "text": "All tickets of row seven. "}[s.Value]
	return strings.Repeat(start, s.N/max(len(start), 1)+1)[:s.N]
}

// smaller yields the draws that have one thing less.
func (d Draw) smaller(f *Framework) func(yield func(Draw) bool) {
	return func(yield func(Draw) bool) {
		without := func(change func(*Draw)) bool {
			c := d
			c.Steps, c.Outside, c.Inside = slices.Clone(d.Steps), slices.Clone(d.Outside), slices.Clone(d.Inside)
			change(&c)
			return c.String() == d.String() || yield(c)
		}
		for i := range d.Steps {
			if !without(func(c *Draw) { c.Steps = slices.Delete(c.Steps, i, i+1) }) {
				return
			}
		}
		for i := range d.Outside {
			if !without(func(c *Draw) { c.Outside = slices.Delete(c.Outside, i, i+1) }) {
				return
			}
		}
		for i := range d.Inside {
			if !without(func(c *Draw) { c.Inside = slices.Delete(c.Inside, i, i+1) }) {
				return
			}
		}
		for _, change := range []func(*Draw){
			func(c *Draw) { c.Policy = Leased },
			func(c *Draw) { c.Failure = "own" },
			func(c *Draw) { c.Encoding = "" },
			func(c *Draw) { c.Host, c.Proto = f.Hosts[0].Name, "1.1" },
			func(c *Draw) {
				for i, s := range c.Steps {
					switch s.Op {
					case "write", "string", "copy", "file", "stream":
						if s.N > 7 {
							c.Steps[i].N = 7
						}
					}
				}
			},
		} {
			if !without(change) {
				return
			}
		}
	}
}
