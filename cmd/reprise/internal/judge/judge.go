// Package judge tells how well a service keeps the Idempotency-Key header, from the
// outside.
//
// A case is one sentence about a service. The cases are tables, one for each group; a
// [Profile] gives a case a level. [Run] asks the cases of a profile one after the other
// over real connections, and reports for each whether it was met, not met, or not shown:
// a case that needs something which the service or the command line did not offer is
// never counted as met.
package judge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// Options name the service to judge and the rules.
type Options struct {
	Version string // of this program, for the report
	Profile *Profile
	Only    []string // IDs of cases and names of groups; empty: all of the profile

	URL     *url.URL   // the endpoint; its answer differs from run to run
	Also    []*url.URL // the same endpoint at other addresses of the service
	Other   *url.URL   // another endpoint of the service
	Header  string     // the name of the key's field
	Fields  []wire.Field
	Body    string       // of the requests
	Another string       // a different body that the endpoint takes as well
	Scopes  []wire.Field // the credentials of two principals; empty: none are sent

	Executions *url.URL                        // a counter of runs
	Restart    func(ctx context.Context) error // kills the service and starts it again
	Retention  time.Duration                   // after which the service forgets a key

	Parallel int           // duplicates that are sent at once
	Slow     time.Duration // of a run that others overlap
	MaxTime  time.Duration // of all cases together
	Client   *wire.Client
}

// State is how a case ended.
type State string

// The states.
const (
	Met      State = "met"
	NotMet   State = "not met"
	NotShown State = "not shown" // it could not be tried; the detail says why
)

// Result is how one case ended.
type Result struct {
	Case    *Case
	Level   Level // of the profile, and Must if the case showed harm
	State   State
	Detail  string // the reason, unless it is met
	Elapsed time.Duration
}

// Report is the result of a run.
type Report struct {
	Options  *Options
	Started  time.Time
	Elapsed  time.Duration
	Ended    string // why the run ended early; the cases after it are not shown
	Facts    Facts
	Results  []Result
	Requests int64
	Bytes    int64
}

// Count returns how many results of a level are in a state.
func (r *Report) Count(l Level, s State) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Level == l && r.Results[i].State == s {
			n++
		}
	}
	return n
}

// Failed reports whether a must is not met.
func (r *Report) Failed() bool { return r.Count(Must, NotMet) > 0 }

// UnusableError says that replays cannot be told from runs by the answers of the
// endpoint.
type UnusableError struct{ Reason string }

func (e *UnusableError) Error() string { return e.Reason }

// errMaxTime is the cause of a context that reached Options.MaxTime.
var errMaxTime = fmt.Errorf("%w: time", wire.ErrLimit)

// Run judges a service. The errors are a [wire.DialError] if the service cannot be
// reached, an [UnusableError] if its answers tell no runs apart, and the error of ctx.
// progress is called before each case.
func Run(ctx context.Context, o *Options, progress func(done, all int, id string)) (*Report, error) {
	started := time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, o.MaxTime, errMaxTime)
	defer cancel()
	facts, err := learn(bounded, o)
	if err != nil {
		return nil, err
	}
	report := &Report{Options: o, Started: started, Facts: facts}
	selected := o.Profile.Cases(o.Only)
	once := new(shared)
	for i, c := range selected {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		progress(i, len(selected), c.ID)
		result := Result{Case: c, Level: o.Profile.Level(c), State: NotShown}
		switch missing := c.needs &^ facts.have; {
		case report.Ended != "":
			result.Detail = report.Ended
		case missing != 0:
			result.Detail = missing.reason()
		default:
			began := time.Now()
			v := (&env{options: o, facts: facts, ctx: bounded, shared: once}).judge(c)
			result.State, result.Detail, result.Elapsed = v.state, v.detail, time.Since(began)
			if v.harm {
				result.Level = Must
			}
			if v.last {
				report.Ended = v.detail
			}
		}
		report.Results = append(report.Results, result)
	}
	report.Elapsed = time.Since(started)
	report.Requests, report.Bytes = o.Client.Used()
	return report, nil
}

// Cases returns the cases of a profile in their order; only selects by ID or group.
func (p *Profile) Cases(only []string) []*Case {
	var selected []*Case
	for i := range All {
		c := &All[i]
		if p.Level(c) == None || len(only) > 0 && !slices.Contains(only, c.ID) && !slices.Contains(only, c.Group()) {
			continue
		}
		selected = append(selected, c)
	}
	return selected
}

// Unknown returns the first of the names that selects no case of the profile.
func (p *Profile) Unknown(names []string) string {
	for _, name := range names {
		if len(p.Cases([]string{name})) == 0 {
			return name
		}
	}
	return ""
}

// verdict ends a case; the methods of env panic with it.
type verdict struct {
	state  State
	detail string
	last   bool // the detail keeps the run from going on
	harm   bool // an operation ran twice, or a request got the answer of another one
}

// judge runs one case.
func (e *env) judge(c *Case) (v verdict) {
	defer e.close()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case verdict:
			v = r
		default:
			panic(r)
		}
	}()
	c.run(e)
	return verdict{state: Met}
}

// fail ends the case: the service did something else.
func (e *env) fail(format string, args ...any) {
	panic(verdict{state: NotMet, detail: fmt.Sprintf(format, args...)})
}

// harm ends the case: an operation ran twice, or a request got the answer of another one.
// That is a must, whatever the level of the case.
func (e *env) harm(format string, args ...any) {
	panic(verdict{state: NotMet, detail: fmt.Sprintf(format, args...), harm: true})
}

// skip ends the case as not shown.
func (e *env) skip(format string, args ...any) {
	panic(verdict{state: NotShown, detail: fmt.Sprintf(format, args...)})
}

// ended ends the case and the run, whose time is over.
func (e *env) ended() { e.stop(NotShown, context.Cause(e.ctx).Error()) }

// stop ends the case and the run for a reason.
func (e *env) stop(s State, why string) { panic(verdict{state: s, detail: why, last: true}) }

// must ends the case if there is an error of the connection.
func (e *env) must(err error) {
	var unreachable *wire.DialError
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrLimit):
		e.stop(NotShown, err.Error())
	case e.ctx.Err() != nil:
		e.ended()
	case errors.As(err, &unreachable):
		probe, down := e.options.Client.Dial(e.ctx, e.options.URL)
		if down == nil {
			probe.Close()
		}
		if down != nil {
			e.stop(NotMet, "the service stopped accepting connections: "+err.Error())
		}
		e.fail("%v", err)
	default:
		e.fail("%v", err)
	}
}
