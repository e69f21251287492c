package reprisepg

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestThePaceOfAPurge: its defaults, and the bounds of each field.
func TestThePaceOfAPurge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config, want PurgerConfig
		ok           bool
	}{
		{PurgerConfig{}, PurgerConfig{Every: DefaultPurgeEvery, Batch: DefaultPurgeBatch, Timeout: DefaultPurgeTimeout}, true},
		{PurgerConfig{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, PurgerConfig{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, true},
		{PurgerConfig{Every: time.Hour, Batch: 100_000, Timeout: 1}, PurgerConfig{Every: time.Hour, Batch: 100_000, Timeout: 1}, true},
		{config: PurgerConfig{Every: time.Second - 1}},
		{config: PurgerConfig{Batch: -1}},
		{config: PurgerConfig{Batch: 100_001}},
		{config: PurgerConfig{Pause: -1}},
		{config: PurgerConfig{Timeout: -1}},
	} {
		got, err := test.config.withDefaults()
		if test.ok && (err != nil || got != test.want) || !test.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %+v, %v; want %+v", test.config, got, err, test.want)
		}
	}
	db := sql.OpenDB(&refusing{})
	defer func() { _ = db.Close() }()
	st, err := NewSQL(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]error{
		-1: store.ErrInvalid, 0: store.ErrInvalid, 1: store.ErrUnavailable, 100_000: store.ErrUnavailable, 100_001: store.ErrInvalid,
	} {
		if _, err := st.Purge(t.Context(), limit); !errors.Is(err, want) {
			t.Errorf("a purge of %d: %v, want %v", limit, err, want)
		}
	}
	for limit, want := range map[int]error{0: store.ErrInvalid, 1: store.ErrUnavailable} {
		if _, err := st.Purgeable(t.Context(), limit); !errors.Is(err, want) {
			t.Errorf("a count up to %d: %v, want %v", limit, err, want)
		}
	}
}

// TestReplaysAreCommonFromTwoInFive: the estimate follows the traffic to either side.
func TestReplaysAreCommonFromTwoInFive(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		replays int // of ten claims
		want    bool
	}{{0, false}, {3, false}, {5, true}, {10, true}} {
		var r recent
		for range 100 {
			for i := range 10 {
				r.count(i < test.replays)
			}
		}
		if got := r.replaysCommon(); got != test.want {
			t.Errorf("with %d replays in ten they are common: %t", test.replays, got)
		}
		if share := r.share.Load(); share > recentWhole {
			t.Errorf("a share of %d in %d", share, recentWhole)
		}
	}
	var r recent
	for range 200 {
		r.count(true)
	}
	few := 0
	for ; r.replaysCommon(); few++ {
		r.count(false)
	}
	if few < 40 || few > 80 { // 64 · ln 2.5 is 59
		t.Errorf("after %d claims without a replay they are not common any more", few)
	}
	r.share.Store(recentCommon)
	if r.replaysCommon() {
		t.Error("two in five are common already")
	}
}

// TestPausesGrow: the first repetition is at once, later ones wait, and none outlasts its
// caller.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for try := 1; try <= maxTries; try++ {
			longest := time.Duration(0)
			for range 50 {
				start := time.Now()
				if !pause(t.Context(), try) {
					t.Errorf("pause %d ends the call", try)
				}
				longest = max(longest, time.Since(start))
			}
			low, high := time.Duration(try)*time.Millisecond/2, time.Duration(try)*time.Millisecond
			if try == 1 {
				low, high = 0, 0
			}
			if longest < low || longest > high {
				t.Errorf("pause %d takes up to %v, want %v", try, longest, high)
			}
			if try == 1 && pause(ended, try) {
				t.Error("a caller that left is repeated")
			}
		}
		start := time.Now()
		short, cancelShort := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancelShort()
		if pause(short, 1000) || time.Since(start) != time.Nanosecond {
			t.Error("a pause outlasts its caller")
		}
	})
}

// TestAMissingSchemaIsLoggedOnceAMinute: and nothing else is.
func TestAMissingSchemaIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			log strings.Builder
			m   missingSchema
		)
		logger := slog.New(slog.NewTextHandler(&log, nil))
		lines := func() int { return strings.Count(log.String(), "\n") }
		m.report(t.Context(), logger, "keys", serverError("ERROR", codeDiskFull))
		m.report(t.Context(), logger, "keys", nil)
		if n := lines(); n != 0 {
			t.Errorf("%d lines about something else", n)
		}
		missing := serverError("ERROR", codeNoTable)
		for i, after := range []time.Duration{0, time.Minute - 1, 1} {
			time.Sleep(after) //nolint:forbidigo // in a bubble
			m.report(t.Context(), logger, "keys", missing)
			if n, want := lines(), []int{1, 1, 2}[i]; n != want {
				t.Errorf("%v later: %d lines, want %d", after, n, want)
			}
		}
		if !strings.Contains(log.String(), "run Migrate") || !strings.Contains(log.String(), "table=keys") {
			t.Error(log.String())
		}
	})
}

// TestWhatOperatorsSeeOfARecord: its state and its times at an instant.
func TestWhatOperatorsSeeOfARecord(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000_000
	yes, no, label, attempt, size, fence := true, false, "orders", int32(2), int32(6), int64(40)
	row := func(completed, resolved bool, lease, valid instant) *shown {
		return &shown{
			now: now, id: []byte{1}, readable: &yes, completed: &completed, resolved: &resolved, label: &label, attempt: &attempt, size: &size,
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
			got.Label != label || got.Attempt != 2 || got.Fence != 40 || got.Size != 6 || got.ClaimedAt.UnixMicro() != now-9 ||
			test.completed != 0 && got.CompletedAt.UnixMicro() != test.completed || test.completed == 0 && !got.CompletedAt.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	unreadable := row(false, false, 1000, 5000)
	unreadable.readable = &no
	if got := unreadable.record(); got.State != store.StateUnreadable || got.Label != "" || got.Attempt != 0 || got.Size != 6 || got.ID != (store.ID{1}) {
		t.Errorf("unreadable: %+v", got)
	}
}

// TestWhatADecisionAsksFor: which words the leased store has to write for, and which the
// transactional one grants.
func TestWhatADecisionAsksFor(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		wordClaimed, wordNew, wordTakeover, wordAgain, wordMismatch, wordCompleted, wordInProgress, wordOwnLapsed, wordLapsed, wordLostRace, wordCorrupt,
	} {
		d := decision{word: word, attempt: 2, fence: 40, leaseLeft: 1000, payload: []byte("answer"), validLeft: 2000, age: 3000}
		writes := word == wordNew || word == wordTakeover || word == wordAgain
		grants := word == wordNew || word == wordTakeover
		if d.rewrites() != writes || d.claimable() != grants {
			t.Errorf("%s: rewrites %t, claimable %t", word, d.rewrites(), d.claimable())
		}
	}
	result := func(word string) (store.Outcome, error) {
		d := decision{word: word}
		got, err := d.result()
		return got.Outcome, err
	}
	atomic := func(word string) (store.Outcome, error) {
		d := decision{word: word}
		got, err := d.atomicResult()
		return got.Outcome, err
	}
	for _, test := range []struct {
		word           string
		leased, atomic store.Outcome
		err            error
	}{
		{wordClaimed, store.Claimed, store.Claimed, nil},
		{wordOwnLapsed, store.Claimed, store.Lapsed, nil},
		{wordAgain, 0, store.InProgress, nil},
		{wordInProgress, store.InProgress, store.InProgress, nil},
		{wordCompleted, store.Completed, store.Completed, nil},
		{wordMismatch, store.Mismatch, store.Mismatch, nil},
		{wordLapsed, store.Lapsed, store.Lapsed, nil},
		{wordLostRace, 0, 0, errLostRace},
		{wordCorrupt, 0, 0, store.ErrCorrupt},
		{"a word of another release", 0, 0, store.ErrCorrupt},
	} {
		if got, err := result(test.word); test.word != wordAgain && (got != test.leased || !errors.Is(err, test.err)) {
			t.Errorf("%s: %v, %v", test.word, got, err)
		}
		if got, err := atomic(test.word); got != test.atomic || !errors.Is(err, test.err) {
			t.Errorf("%s of the transactional store: %v, %v", test.word, got, err)
		}
	}
}
