package draws

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/protocol"
)

// Framework is a framework under comparison. Its servers answer POST /draw with the
// program of the case that the request names, see [Cases].
type Framework struct {
	Name  string
	Hosts []Host

	// Layers are the layers that a draw may have on either side. The framework makes the
	// stack of a request from their names.
	Layers []string

	// Leased says that the framework has no transactional policy.
	Leased bool

	// Ops are the steps that the framework has, by name.
	Ops []string

	// Coders are the layers that compress.
	Coders []string

	// Lazy are the layers and hosts that hold the response back until the handler has
	// returned, and take the header then.
	Lazy []string

	// Blind are the layers and hosts that take a 1xx for the final status.
	Blind []string

	// Fresh has the layers whose fields belong to one response, so that they are never
	// replayed from below the adapter (R14), with those fields.
	Fresh map[string][]string

	// Documented are differences of this framework, beside those of all.
	Documented []Difference
}

// Host is one way to serve a framework.
type Host struct {
	Name   string
	Addr   string
	Protos []string // "1.0", "1.1", "2"

	// Do, if not nil, sends a request without a socket, as app.Test of Fiber does.
	Do func(*http.Request) (*http.Response, error)
}

// CaseField is the request field that names the case.
const CaseField = "X-Draw"

// Case is a draw that is being tried, with or without the adapter.
type Case struct {
	*Draw

	Guard *protocol.Guard // nil: without the adapter

	runs     atomic.Int64
	panicked atomic.Bool
	hijacked atomic.Bool
	over     atomic.Bool // the adapter, or what is in its place, has returned once
}

// Ran counts a run of the handler, which calls it first.
func (c *Case) Ran() { c.runs.Add(1) }

// Watch notes the end of the adapter, or of what is in its place, and a panic that leaves
// it. It is deferred there, and the panic goes on.
func (c *Case) Watch() {
	defer c.over.Store(true)
	if p := recover(); p != nil {
		c.panicked.Store(true)
		panic(p)
	}
}

// Cases finds the case of a request. It is safe for concurrent use.
type Cases struct {
	byID sync.Map
	last atomic.Uint64
}

// Find returns the case that the field [CaseField] of a request names.
func (c *Cases) Find(id string) *Case {
	found, _ := c.byID.Load(id)
	return found.(*Case) //nolint:forcetypeassert // only Run sends requests
}

// next returns a number that no case and no key has.
func (c *Cases) next() string { return strconv.FormatUint(c.last.Add(1), 10) }

// add registers a case, and returns its ID.
func (c *Cases) add(one *Case) (id string) {
	id = c.next()
	c.byID.Store(id, one)
	return id
}
