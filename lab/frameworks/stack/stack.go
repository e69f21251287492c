// Package stack compares responses through real middlewares with and without ours.
//
// [Run] serves every kind of handler behind every layer of a framework, with the layer
// outside and inside of the middleware and without the middleware, and sends requests
// with and without compression. The first response with a key has to equal the one
// without our middleware, the replay has to equal the first, and a handler whose response
// is kept has to run once. A difference that is right is listed with its reason, and
// fails the test when it is gone.
//
// A framework takes part by a test package beside this one that has its layers and its
// native handlers: ginstack, echostack, nethttpstack.
package stack

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// Kinds are the kinds of handlers. A framework has a native handler for each.
var Kinds = []string{
	"json",       // 201 with JSON, as the framework encodes it
	"text",       // 200 with 4 KiB of text
	"untyped",    // bytes without a media type
	"empty",      // 204
	"status",     // 202 without a body
	"silent",     // neither a status nor a body
	"redirect",   // 303
	"refused",    // 409 in the framework's own way
	"missing",    // 404 without a body
	"failed",     // 500, which is released
	"length",     // a body whose length the handler declares
	"stream",     // three parts that are flushed
	"copied",     // 50 KB by io.Copy
	"file",       // http.ServeContent, or the framework's version of it
	"compressed", // a body that the handler compressed itself
	"large",      // 300 KB in several writes
	"panics",     // before anything is written
	"fields",     // several lines of one field, and one that the handler removes
}

// Position is where a layer stands.
type Position string

// The positions of a layer, seen from our middleware.
const (
	Outside Position = "outside"
	Inside  Position = "inside"
)

// Route is one handler behind one layer. A framework serves it for POST at Path.
type Route struct {
	Path     string
	Layer    string
	Kind     string
	Position Position
	Guarded  bool   // behind our middleware
	Ran      func() // the handler calls it first
}

// Chain returns the middlewares of a route, the outermost first: those of its layer, and
// ours where the route has it.
func Chain[M any](r Route, layers map[string][]M, ours M) []M {
	var chain []M
	if r.Position == Outside {
		chain = append(chain, layers[r.Layer]...)
	}
	if r.Guarded {
		chain = append(chain, ours)
	}
	if r.Position == Inside {
		chain = append(chain, layers[r.Layer]...)
	}
	return chain
}

// Framework is a framework under comparison.
type Framework struct {
	Layers []string

	// Serve serves the routes on a free port of the loopback interface until the test
	// ends.
	Serve func(t *testing.T, guard *protocol.Guard, routes []Route) (addr string)

	// Cut says that a handler that panics has its connection cut, and no response.
	Cut bool

	Differences []Difference
}

// Difference is one between two responses that is right. An empty list or string stands
// for all.
type Difference struct {
	Layers   []string
	Position Position
	Kinds    []string
	Fields   []string // in which the responses differ; also "status", "body", "runs"
	Answer   Answer
	Reason   string

	// Optional says that some releases of the layer do not show it.
	Optional bool
}

// Answer says which response differs from the one that it has to equal.
type Answer string

// The responses that are compared.
const (
	First  Answer = "first"  // with the response of the same stack without our middleware
	Replay Answer = "replay" // with the first
)

// covers reports whether the difference is the one that was found.
func (d *Difference) covers(f finding) bool {
	return d.Answer == f.answer && (d.Position == "" || d.Position == f.position) &&
		among(d.Layers, f.layer) && among(d.Kinds, f.kind) && among(d.Fields, f.field)
}

func among(list []string, name string) bool { return list == nil || slices.Contains(list, name) }

// finding is a difference that was found.
type finding struct {
	layer, kind, encoding string
	position              Position
	answer                Answer
	field                 string
	text                  string
}

func (f finding) String() string {
	return fmt.Sprintf("%s %s, %s, encoding %q: the %s answer differs in %s: %s", f.layer, f.position, f.kind, f.encoding, f.answer, f.field, f.text)
}

// encodings are the values of Accept-Encoding.
var encodings = []string{"", "gzip"}

// Run compares every stack of a framework.
func Run(t *testing.T, f Framework) {
	t.Helper()
	guard := newGuard(t)
	runs := new(counter)
	var routes []Route
	for _, layer := range f.Layers {
		for _, position := range []Position{Outside, Inside} {
			for _, guarded := range []bool{false, true} {
				for _, kind := range Kinds {
					path := fmt.Sprintf("/%s/%s/%v/%s", layer, position, guarded, kind)
					routes = append(routes, Route{path, layer, kind, position, guarded, func() { runs.add(path) }})
				}
			}
		}
	}
	c := client{addr: f.Serve(t, guard, routes), t: t}
	var found []finding
	for _, r := range routes {
		if !r.Guarded {
			continue
		}
		for _, encoding := range encodings {
			found = append(found, compare(&c, &f, r, encoding, runs)...)
		}
	}
	for _, problem := range problems(f.Differences, found) {
		t.Error(problem)
	}
}

// problems lists the differences that were found but not listed, and those listed but not
// found.
func problems(listed []Difference, found []finding) []string {
	var all []string
	met := make([]bool, len(listed))
	for _, f := range found {
		i := slices.IndexFunc(listed, func(d Difference) bool { return d.covers(f) })
		if i < 0 {
			all = append(all, f.String())
			continue
		}
		met[i] = true
	}
	for i, d := range listed {
		if d.Reason == "" {
			all = append(all, fmt.Sprintf("a difference without a reason: %+v", d))
		}
		if !met[i] && !d.Optional {
			all = append(all, fmt.Sprintf("a difference that is listed was not found: %+v", d))
		}
	}
	return all
}

// compare sends the three requests of a stack.
func compare(c *client, f *Framework, r Route, encoding string, runs *counter) []finding {
	var found []finding
	find := func(answer Answer, differences map[string]string) {
		for field, text := range differences {
			found = append(found, finding{r.Layer, r.Kind, encoding, r.Position, answer, field, text})
		}
	}
	bare := c.send(strings.Replace(r.Path, "/true/", "/false/", 1), encoding, "")
	before := runs.of(r.Path)
	key := fmt.Sprintf("%s:%s", strings.ReplaceAll(r.Path, "/", ":"), encoding)
	first := c.send(r.Path, encoding, key)
	again := c.send(r.Path, encoding, key)
	find(First, differences(first, bare))
	ran := runs.of(r.Path) - before
	switch {
	case released(first, f.Cut):
		if ran != 2 {
			find(Replay, map[string]string{"runs": fmt.Sprintf("a released answer ran %d times, want 2", ran)})
		}
	case ran != 1:
		find(Replay, map[string]string{"runs": fmt.Sprintf("it ran %d times, want 1", ran)})
	case !again.replayed:
		find(Replay, map[string]string{"mark": fmt.Sprintf("it has no mark: %+v", again)})
	}
	find(Replay, differences(again, first))
	return found
}

// released reports whether a response is released by the default policy.
func released(a answer, cut bool) bool {
	return a.status >= 500 || slices.Contains([]int{401, 407, 408, 425, 429, 499, 307, 308}, a.status) || cut && a.err != nil
}

// counter counts by name.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

func (c *counter) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}
