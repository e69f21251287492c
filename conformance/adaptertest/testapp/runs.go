package testapp

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

// runs counts the runs of every op in this process. The zero value is ready for use.
type runs struct {
	mu   sync.RWMutex
	byOp map[string]*opRuns
}

// opRuns counts the runs of one op.
type opRuns struct{ begun, ended atomic.Int64 }

// Of returns the counter of op.
func (r *runs) Of(op string) *opRuns {
	r.mu.RLock()
	c := r.byOp[op]
	r.mu.RUnlock()
	if c != nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c = r.byOp[op]; c == nil {
		if r.byOp == nil {
			r.byOp = make(map[string]*opRuns)
		}
		c = new(opRuns)
		r.byOp[string([]byte(op))] = c // a framework may use the bytes of its path again
	}
	return c
}

// inFlight returns how many runs of all ops have not ended.
func (r *runs) inFlight() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var n int64
	for _, c := range r.byOp {
		n += c.inFlight()
	}
	return n
}

// report is the response to /executions/{op}.
func (r *runs) report(op string) []byte {
	r.mu.RLock()
	c := r.byOp[op]
	r.mu.RUnlock()
	var report struct {
		Executions int64 `json:"executions"`
		InFlight   int64 `json:"in_flight"`
	}
	if c != nil {
		report.InFlight, report.Executions = c.inFlight(), c.begun.Load()
	}
	data, _ := json.Marshal(report) // two numbers
	return data
}

// begin counts a run and returns its number, from 1.
func (c *opRuns) begin() int64 { return c.begun.Add(1) }

func (c *opRuns) end() { c.ended.Add(1) }

// inFlight reads the runs that ended first, so that it is never negative.
func (c *opRuns) inFlight() int64 {
	ended := c.ended.Load()
	return c.begun.Load() - ended
}
