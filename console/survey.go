package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

const (
	surveyTime  = 2 * time.Minute // after which a count is given up
	surveyWait  = time.Second     // for which a page waits for its end, and how long a store is listed that cannot count
	surveyRest  = 9               // times as long as it took, it rests: the store is busy for a tenth of the time
	surveyShown = 10              // records that need a person
)

// survey counts all records of a store, because "nothing is stuck" is only true of all.
// One count runs at a time, in a goroutine that ends with its time, and pages share it.
type survey struct {
	mu      sync.Mutex
	done    chan struct{} // of the running count; nil: none runs
	running tally         // likewise, or of one that failed
	last    tally         // zero: no count has ended since the last resolution
	stale   bool          // a record was resolved while the count ran
	rests   time.Time     // until then no other count starts
	err     error         // of the count that ended last
}

// tally is the result of a count, or the part of it that was read.
type tally struct {
	At      time.Time // when it ended; zero: it did not
	Stuck   int
	Waiting int       // lapsed records that a retry takes over
	Since   time.Time // when the oldest stuck one was claimed; zero: not known
	Needs   []row     // the oldest of those that need a person
	Counts  []count   // by policy
}

// count is how many records of a policy there are, of all processes.
type count struct {
	Label                                       string
	Running, Stuck, Waiting, Completed, Expired int
	Since                                       time.Time // when the oldest stuck one was claimed
}

// errCut is the error of a count that did not read the whole store.
var errCut = errors.New("console: the store was not read to its end")

// start starts a count, unless one runs or the store has to rest.
func (v *survey) start(st store.Store, needsHuman func(*store.Record) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done == nil && !time.Now().Before(v.rests) {
		v.done, v.running = make(chan struct{}), tally{}
		go v.count(st, needsHuman, time.Now())
	}
}

// result waits for the running count until ctx ends, and returns the last one that ended.
// Where none did, it is the part that was read. The error is that of the last one.
func (v *survey) result(ctx context.Context) (t tally, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if done := v.done; done != nil {
		v.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		v.mu.Lock()
	}
	if t = v.last; t.At.IsZero() {
		t = v.running
	}
	t.Needs, t.Counts = slices.Clone(t.Needs), slices.Clone(t.Counts)
	return t, v.err
}

// resolved makes the next page count again, because a record was resolved.
func (v *survey) resolved() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.stale, v.rests = tally{}, v.done != nil, time.Time{}
}

func (v *survey) count(st store.Store, needsHuman func(*store.Record) bool, began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), surveyTime)
	defer cancel()
	err := errors.New("console: the count panicked")
	defer func() {
		if reason := recover(); reason != nil { // as net/http does, which the pages share the process with
			err = fmt.Errorf("%w: %v", err, reason)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		switch v.err = err; {
		case v.stale:
		case err == nil:
			v.running.At = time.Now()
			v.last = v.running
			fallthrough
		default:
			v.rests = time.Now().Add(surveyRest * time.Since(began))
		}
		v.stale = false
		close(v.done)
		v.done = nil
	}()
	seen := map[store.ID]bool{} // a record may be shown twice
	var finished map[store.LabelState]int
	finished, err = countAll(ctx, st, func(r *store.Record) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !seen[r.ID] {
			seen[r.ID] = true
			v.running.add(r, needsHuman(r))
		}
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, n := range finished {
		c := v.running.of(key.Label)
		if key.State == store.StateCompleted {
			c.Completed += n
		} else {
			c.Expired += n
		}
	}
	if ctx.Err() != nil {
		err = errCut
	}
}

// countAll is Count of a [store.Counter]. Another store is listed for a while, and so is
// one that can answer for a page and not for all records, as with a statement_timeout.
func countAll(ctx context.Context, st store.Store, open func(*store.Record)) (finished map[store.LabelState]int, err error) {
	if counter, can := store.As[store.Counter](st); can {
		if finished, err = counter.Count(ctx, open); err == nil || ctx.Err() != nil {
			return finished, err
		}
	}
	inspector, _ := store.As[store.Inspector](st)
	finished = map[store.LabelState]int{}
	next, err := scan(ctx, inspector, store.Query{Limit: store.MaxPage}, surveyWait, func(page store.Page) int {
		for i := range page.Records {
			if r := &page.Records[i]; r.State.WasCompleted() {
				finished[store.LabelState{Label: r.Label, State: r.State}]++
			} else {
				open(r)
			}
		}
		return store.MaxPage
	})
	if err == nil && next != "" {
		err = errCut
	}
	return finished, err
}

// of returns the counts of a policy.
func (t *tally) of(label string) *count {
	at, known := slices.BinarySearchFunc(t.Counts, label, func(c count, label string) int { return strings.Compare(c.Label, label) })
	if !known {
		t.Counts = slices.Insert(t.Counts, at, count{Label: label})
	}
	return &t.Counts[at]
}

// add counts a record that was not completed.
func (t *tally) add(r *store.Record, stuck bool) {
	c := t.of(r.Label)
	switch {
	case stuck:
		c.Stuck++
		t.Stuck++
		c.Since, t.Since = older(c.Since, r.ClaimedAt), older(t.Since, r.ClaimedAt)
		at, _ := slices.BinarySearchFunc(t.Needs, r.ClaimedAt, func(n row, claimed time.Time) int { return n.ClaimedAt.Compare(claimed) })
		t.Needs = slices.Insert(t.Needs, at, row{Record: *r})
		t.Needs = t.Needs[:min(len(t.Needs), surveyShown)]
	case r.State == store.StateRunning:
		c.Running++
	default:
		c.Waiting++
		t.Waiting++
	}
}

// older returns the earlier of two instants; a zero one is not known.
func older(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
