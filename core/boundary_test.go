package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// of returns the only event of a kind.
func (s *events) of(t *testing.T, kind string) reprise.Event {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.list, func(e reprise.Event) bool { return e.Name() == kind })
	if at < 0 {
		t.Fatalf("no %v", kind)
	}
	return s.list[at]
}

// A completion in the background that finds another owner in the record ends with the
// loss of the lease.
func TestBackgroundCompletionReportsALostLease(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var lost atomic.Bool
		b.store.onComplete = func(context.Context, store.CompleteRequest) error {
			if lost.Load() {
				return store.ErrLeaseLost
			}
			return store.ErrUnavailable
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		lost.Store(true)
		time.Sleep(lease / 2)
		synctest.Wait()
		b.events.wantCount(t, "lease-lost", 1)
		b.events.wantCount(t, "dropped", 1)
		if last := b.events.last(); last.Name() != "dropped" || last.End != reprise.EndDropped {
			t.Errorf("the last event is %v", last.Name())
		}
	})
}

// reader is a decoder that fails with an error, or with a panic, or reads an annotation.
type reader struct {
	err      error
	panics   bool
	answered string
}

func (r reader) Decode([]byte) (string, error) {
	if r.panics {
		panic("oops")
	}
	return r.answered, r.err
}

func TestUnreadablePayloadIsCorruptAndReported(t *testing.T) {
	plain := errors.New("not my format")
	for name, r := range map[string]reader{
		"read":    {answered: "note"},
		"plain":   {err: plain},
		"corrupt": {err: fmt.Errorf("%w: cut", store.ErrCorrupt)},
		"panics":  {panics: true},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			complete(t, b.claim(t, order("k")), "answer", reprise.EndRecorded)
			op := order("k")
			op.Decoder = r
			res, err := b.Begin(t.Context(), op)
			errors := b.events.count("store-error")
			if name == "read" {
				if err != nil || res.Outcome != reprise.Replayed || errors != 0 || b.events.last().Annotation != "note" {
					t.Errorf("%v, %v, %d failures reported, annotation %q", res.Outcome, err, errors, b.events.last().Annotation)
				}
				return
			}
			wantError(t, "Begin", err, store.ErrCorrupt)
			if r.err != nil {
				wantError(t, "Begin", err, r.err)
			}
			if errors != 1 || res.Outcome != reprise.Corrupt || res.Payload != nil {
				t.Errorf("%d failures reported, outcome %v with %q", errors, res.Outcome, res.Payload)
			}
		})
	}
}

func TestARefusalHasAnOutcomeThatExists(t *testing.T) {
	t.Parallel()
	b := setup(t, reprise.Config{})
	for outcome, want := range map[reprise.Outcome]reprise.Outcome{
		0:                  reprise.Failed,
		reprise.Replayed:   reprise.Replayed,
		reprise.Expired:    reprise.Expired,
		reprise.Failed + 1: reprise.Failed,
	} {
		before := b.Stats().Outcomes[want]
		b.Refuse(t.Context(), "", outcome, nil)
		if got := b.events.last().Outcome; got != want || b.Stats().Outcomes[want] != before+1 {
			t.Errorf("%d is reported as %v and counted %d times, want %v", outcome, got, b.Stats().Outcomes[want]-before, want)
		}
	}
}
