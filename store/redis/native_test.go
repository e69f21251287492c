package repriseredis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// nativeOf returns the claim that claim makes, as it is before it is sent.
func nativeOf(t *testing.T) *nativeClaim {
	t.Helper()
	n := &nativeClaim{request: store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Hour, Policy: store.Policy{Retention: time.Hour}}}
	n.script, n.key = record.ClaimScript, "key"
	n.prepare()
	n.make(t.Context(), 0)
	return n
}

// The record of a native claim counts as claimed only if the expiry of the key is that of
// this claim: it cannot have changed before nine tenths of the lease are over.
func TestLateGrantIsDecidedByTheScript(t *testing.T) {
	t.Parallel()
	const span = 3_600_000 - 1
	for _, c := range []struct {
		name string
		took time.Duration // of the lease of an hour
		tail int64
		err  error
		want bool // whether the answer decides
	}{
		{"at once", 0, span + 5, nil, true},
		{"in time", 53 * time.Minute, span + 5, nil, true},
		{"late", 55 * time.Minute, span + 5, nil, false},
		{"after the lease", 2 * time.Hour, span + 5, nil, false},
		{"the key is gone", 0, -2, nil, false},
		{"the key does not expire", 0, -1, nil, false},
		{"the key expires before it was set", 0, span, nil, false},
		{"no answer", 0, 0, errors.New("cut"), false},
	} {
		n := nativeOf(t)
		n.SetErr(redis.Nil)
		n.sent = time.Now().Add(-c.took)
		n.tail.SetVal(c.tail)
		n.tail.SetErr(c.err)
		if got := n.decide(); got != c.want {
			t.Errorf("%s: decided %v, want %v", c.name, got, c.want)
			continue
		}
		want := store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Fence: 5999, Remaining: time.Hour - time.Millisecond}
		if c.want && (n.err != nil || fmt.Sprint(n.result) != fmt.Sprint(want)) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, n.result, n.err, want)
		}
		if !c.want && !n.uncertain {
			t.Errorf("%s: the claim is held, and a failure of the script would not say so", c.name)
		}
	}
}

func TestALateAnswerIsLateByEitherClock(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for took, late := range map[[2]time.Duration]bool{ // by the monotonic clock and by the wall clock
		{900 * ms, 900 * ms}: false, {901 * ms, 901 * ms}: true, {ms, 901 * ms}: true, {901 * ms, ms}: true, {ms, -time.Hour}: false,
	} {
		if got := tooLong(time.Second, took[0], took[1]); got != late {
			t.Errorf("%v of a second: late %v, want %v", took, got, late)
		}
	}
}

// The record that a native claim found decides about the next command, and also in a
// batch each claim decides by its own replies.
func TestNativeClaimDecidesByTheRecord(t *testing.T) {
	t.Parallel()
	other := string(recordOfClaim(store.Fingerprint{31: 1}))
	elsewhere := string(record.AppendCompleted(nil, &store.CompleteRequest{Policy: store.Policy{Retention: time.Hour, Horizon: time.Hour}, Payload: []byte("payload")}))
	for _, c := range []struct {
		name  string
		found string
		want  store.Outcome
		err   error
		sent  string
	}{
		{"nothing", claimed, store.Claimed, nil, "set"},
		{"an answer", bulk(string(replayable("payload"))), store.Completed, nil, "set"},
		{"another request in progress", bulk(other), store.Mismatch, nil, "set"},
		{"another completed request", bulk(strings.Replace(string(replayable("x")), "\x00", "\x01", 20)), store.Mismatch, nil, "set"},
		{"this request in progress", bulk(string(recordOfClaim(store.Fingerprint{}))), store.InProgress, nil, "set, evalsha"},
		{"an answer elsewhere", bulk(elsewhere), store.InProgress, nil, "set, evalsha"},
		{"a fence", bulk("\x25\x00\x00\x00\x00\x00\x00\x00\x07"), store.InProgress, nil, "set, evalsha"},
		{"a cut record", bulk(other[:65]), 0, store.ErrCorrupt, "set"},
		{"one that is gone when it is read", bulk(""), 0, store.ErrCorrupt, "set"},
		{"memory is full", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", store.InProgress, nil, "set, evalsha"},
		{"the disk fails", "-MISCONF Errors writing to the AOF file\r\n", store.InProgress, nil, "set, evalsha"},
		{"replicas are missing", "-NOREPLICAS Not enough good replicas to write.\r\n", store.InProgress, nil, "set, evalsha"},
		{"a list", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", 0, store.ErrCorrupt, "set"},
	} {
		f := newFake(t, func(_, _ int, command []string) string {
			if command[0] == "set" {
				return c.found
			}
			return bulk("P\x00\x00\x00\x00\x00\x0f\x42\x40")
		})
		got, err := claim(t, newStore(t, f, Config{}))
		if got.Outcome != c.want || c.err == nil && err != nil || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got.Outcome, err, c.want, c.err)
		}
		if f.sent() != c.sent {
			t.Errorf("%s: sent %q, want %q", c.name, f.sent(), c.sent)
		}

		call := 0
		f = newFake(t, func(_, _ int, _ []string) string {
			if call++; call == 1 {
				return claimed
			}
			return c.found
		})
		beside, n := nativeOf(t), nativeOf(t)
		nodeFor(t, newBatching(t, f, Config{})).send(t.Context(), &beside.command, &n.command)
		sure := c.err == nil && c.sent == "set"
		if got := n.sendErr == nil && n.decide(); got != sure || sure && n.result.Outcome != c.want {
			t.Errorf("%s, in a batch: decided %v, %v; want %v", c.name, got, n.result.Outcome, c.want)
		}
		if !beside.decide() || beside.result.Outcome != store.Claimed || beside.result.Fence != 1999 {
			t.Errorf("%s: the claim beside it: %+v, %v", c.name, beside.result, beside.sendErr)
		}
	}
}
