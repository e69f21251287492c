package table

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestInspectShowsStateAndTimes: its state and its times at an instant.
func TestInspectShowsStateAndTimes(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000_000
	yes, no, label, attempt, size, fence := true, false, "orders", int32(2), int32(6), int64(40)
	retention, horizon := time.Hour.Microseconds(), time.Minute.Microseconds()
	description, fingerprint := "POST /orders", store.Fingerprint{2, 31: 3}
	policy := store.Policy{Label: label, AtMostOnce: true, Retention: time.Hour, Horizon: time.Minute}
	row := func(completed, resolved bool, lease, valid instant) *shown {
		return &shown{
			now: now, id: []byte{1}, readable: &yes, completed: &completed, expired: &no, resolved: &resolved, label: &label, description: &description, fingerprint: fingerprint[:],
			atMostOnce: &yes, retention: &retention, horizon: &horizon, attempt: &attempt, size: &size,
			fence: &fence, createdAt: now - 9, leaseUntil: now + lease, validUntil: now + valid,
		}
	}
	for name, test := range map[string]struct {
		row       *shown
		state     store.RecordState
		lease     time.Duration
		validity  time.Duration
		completed int64
		resolved  bool
	}{
		"running":                       {row(false, false, 1000, 5000), store.StateRunning, time.Millisecond, 5 * time.Millisecond, 0, false},
		"running past its retention":    {row(false, false, 1000, -5000), store.StateRunning, time.Millisecond, time.Millisecond, 0, false},
		"lapsed at the end":             {row(false, false, 0, 5000), store.StateLapsed, 0, 5 * time.Millisecond, 0, false},
		"lapsed":                        {row(false, false, -1000, 5000), store.StateLapsed, -time.Millisecond, 5 * time.Millisecond, 0, false},
		"completed":                     {row(true, false, -3, 5000), store.StateCompleted, 0, 5 * time.Millisecond, now - 3, false},
		"completed by version 2":        {row(true, false, 7, 5000), store.StateCompleted, 0, 5 * time.Millisecond, now, false},
		"completed by an operator":      {row(true, true, -3, 5000), store.StateCompleted, 0, 5 * time.Millisecond, now - 3, true},
		"running, and marked by nobody": {row(false, true, 1000, 5000), store.StateRunning, time.Millisecond, 5 * time.Millisecond, 0, false},
	} {
		got := test.row.record()
		if got.State != test.state || got.Lease != test.lease || got.Validity != test.validity || got.Resolved != test.resolved ||
			got.Policy != policy || got.Description != description || got.Fingerprint != fingerprint || got.Attempt != 2 || got.Fence != 40 || got.Size != 6 || got.ClaimedAt.UnixMicro() != now-9 ||
			test.completed != 0 && got.CompletedAt.UnixMicro() != test.completed || test.completed == 0 && !got.CompletedAt.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	expired := row(true, true, -3, 5000)
	expired.expired = &yes
	if got := expired.record(); got.State != store.StateExpired || !got.Resolved || got.CompletedAt.UnixMicro() != now-3 || got.Validity != 5*time.Millisecond {
		t.Errorf("expired: %+v", got)
	}
	unreadable := row(false, false, 1000, 5000)
	unreadable.readable = &no
	if got := unreadable.record(); got.State != store.StateUnreadable || got.Policy != (store.Policy{}) || got.Attempt != 0 || got.Fence != 40 || got.Size != 6 || got.ID != (store.ID{1}) {
		t.Errorf("unreadable: %+v", got)
	}
}
