package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"
)

// step is one thing that happens in a case: a call and the answer that it must get, or
// time that passes. It returns what was wrong.
type step struct {
	says string
	do   func(*scene) error
}

// scenario is a case that is a row of steps.
func scenario(id string, needs []conformance.Need, source, rule string, steps ...step) testCase {
	return testCase{conformance.Case{ID: id, Rule: rule, Source: source, Needs: needs}, func(e *env) {
		e.Helper()
		for e.grain = e.fixture.Grain; e.grain <= 64*e.fixture.Grain; e.grain *= 2 {
			err := newScene(e).run(steps)
			if errors.Is(err, errSlow) {
				continue
			}
			if err != nil {
				e.Fatal(err)
			}
			return
		}
		e.Fatalf("inconclusive: a few calls took longer than %v", e.grain)
	}}
}

// function is a case that no row of steps expresses.
func function(id string, needs []conformance.Need, source, rule string, test func(*scene)) testCase {
	return testCase{conformance.Case{ID: id, Rule: rule, Source: source, Needs: needs}, func(e *env) { test(newScene(e)) }}
}

// errSlow says that calls took so long that their answers mean nothing.
var errSlow = errors.New("too slow")

// scene is what is known while steps are run: the operations, and the callers that took
// part in them.
type scene struct {
	*env

	operations map[int]*operation
	callers    map[role]*caller
}

// role is an actor in one of the operations of a case.
type role struct {
	name      string
	operation int
}

// operation is what the steps so far say of the record of an ID.
type operation struct {
	id          store.ID
	fingerprint store.Fingerprint
	fence       uint64 // the highest that was granted
	payload     string
	reason      string // why its outcome is unknown
	resolved    bool

	claimedAt, completedAt time.Time // as they were shown first
}

func newScene(e *env) *scene {
	return &scene{env: e, operations: map[int]*operation{}, callers: map[role]*caller{}}
}

// run runs steps, up to the first that ends otherwise than it should.
func (s *scene) run(steps []step) error {
	for i, st := range steps {
		if err := st.do(s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, st.says, err)
		}
	}
	return nil
}

// must runs steps, and ends the test at the first that ends otherwise than it should.
func (s *scene) must(steps ...step) {
	s.Helper()
	if err := s.run(steps); err != nil {
		s.Fatal(err)
	}
}

// operation returns one of the operations of the case, a new one at its first step.
func (s *scene) operation(n int) *operation {
	if s.operations[n] == nil {
		s.operations[n] = &operation{id: suite.NewID(), fingerprint: store.Fingerprint(suite.NewID())}
	}
	return s.operations[n]
}

// caller returns the caller that an actor stands for, with what its step gives it. At
// first, leases and retentions outlast the case.
func (s *scene) caller(a actor) *caller {
	key := role{a.name, a.operation}
	c := s.callers[key]
	if c == nil {
		op := s.operation(a.operation)
		c = &caller{scene: s, store: s.one, operation: op}
		c.ID, c.Owner, c.Fingerprint = op.id, store.NewOwner(), op.fingerprint
		c.Lease, c.Retention, c.Takeover = time.Hour, time.Hour, true
		if a.there {
			c.store = s.two
		}
		if a.different {
			c.Fingerprint[len(c.Fingerprint)-1] ^= 1
		}
		s.callers[key] = c
	}
	for _, give := range a.gives {
		give(c)
	}
	return c
}

// span is a time in a table.
type span struct {
	grains int // of the fixture
	plus   time.Duration
}

var (
	short   = span{grains: 1}       // a lease or a retention that a step lets end
	long    = span{plus: time.Hour} // one that does not end while a case runs
	instant = span{plus: 1}
)

const hour = time.Hour // of long

func (d span) times(n int) span        { return span{d.grains * n, d.plus * time.Duration(n)} }
func (d span) justBefore() span        { return span{d.grains, d.plus - 1} }
func (d span) in(e *env) time.Duration { return time.Duration(d.grains)*e.grain + d.plus }

// passes lets at least d pass on the store's clock.
func passes(d span) step {
	return step{"time passes", func(s *scene) error {
		s.Helper()
		s.advance(d.in(s.env))
		return nil
	}}
}

// within runs steps that mean something only if they take less than d. If they take
// longer, the case is run again, with more time.
func within(d span, steps ...step) step {
	return step{"in time", func(s *scene) error {
		start := s.now()
		err := s.run(steps)
		if s.now().Sub(start) >= d.in(s.env) {
			return errSlow
		}
		return err
	}}
}

// each runs steps for every value, with new operations.
func each[T any](values []T, steps func(T) []step) step {
	return step{"each", func(s *scene) error {
		for _, v := range values {
			if err := newScene(s.env).run(steps(v)); err != nil {
				return fmt.Errorf("%.40q: %w", fmt.Sprint(v), err)
			}
		}
		return nil
	}}
}

// repeated runs steps for 0 to n-1, within the same operations.
func repeated(n int, steps func(int) []step) step {
	return step{"repeated", func(s *scene) error {
		for i := range n {
			if err := s.run(steps(i)); err != nil {
				return fmt.Errorf("round %d: %w", i, err)
			}
		}
		return nil
	}}
}
