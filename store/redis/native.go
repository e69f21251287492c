package repriseredis

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// nativeClaim is a claim by two commands of Redis in one write:
//
//	SET key record NX PX span GET
//	PEXPIRETIME key
//
// The first writes the record of a first attempt if there is none, and otherwise returns
// the record. From the second follows the instant of the claim by the server's clock.
// Where these two do not decide, claim.lua does. In a batch, a third command reads the
// start of the record in place of GET, so that its reply is bounded:
//
//	GETRANGE key 0 limit
//
// It may read a record that has replaced the one that the first command found.
type nativeClaim struct {
	command
	request store.ClaimRequest
	sent    time.Time // before the last attempt
	result  store.ClaimResult
}

// The arguments that are the same for every claim.
var argSet, argNX, argPX, argGet, argExpiry, argRange any = "set", "nx", "px", "get", "pexpiretime", "getrange"

// prepare makes n a native claim. For a caller that waits, it is a call of the script,
// because the caller expects an attempt in progress, and only the script can mark that as
// watched.
func (n *nativeClaim) prepare() {
	c := &n.command
	c.claim = n
	if n.request.Waiting {
		c.useScript()
		return
	}
	c.fixed = record.AppendClaimed(c.buf[:0], &n.request)
	c.span = record.ClaimSpan(n.request.Lease, n.request.Remembered())
	c.args = [maxArgs]any{argSet, &c.key, &c.fixed, argNX, argPX, &c.span, argGet, argExpiry, &c.key}
	c.n = 7
}

// useScript makes c a call of claim.lua if it is a native claim.
func (c *command) useScript() {
	if c.claim == nil {
		return
	}
	c.fixed = record.AppendClaim(c.buf[:0], &c.claim.request)
	c.claim = nil
	c.callScript(&c.fixed)
}

// granted reports whether a native claim wrote its record.
func (c *command) granted() bool {
	return c.sendErr == nil && c.null == (c.found == nil) // GET answers nil where there was no record
}

// record returns the record that a native claim found, or its start.
func (c *command) record() []byte {
	found := c.StringCmd
	switch {
	case c.granted():
		return nil
	case c.found != nil:
		found = c.found
	}
	b, _ := found.Bytes()
	return b
}

// decide reads the answer to a native claim. It reports whether that decides, and leaves
// the result in c.err or in the result of the claim. Otherwise the script has to decide.
func (c *command) decide() bool {
	n := c.claim
	c.err = nil
	if c.granted() {
		// Until the lease ends, only its owner changes the expiry of the record; afterwards
		// any claim may. So the expiry counts only if it was read in time. The lease starts
		// with the millisecond of the claim.
		expires, err := c.tail.Result()
		now := time.Now()
		late := tooLong(n.request.Lease, now.Sub(n.sent), now.Round(0).Sub(n.sent.Round(0)))
		if began := expires - c.span; err == nil && began > 0 && !late {
			n.result = store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Fence: record.FenceAt(began), Remaining: n.request.Lease - time.Millisecond}
			return true
		}
		c.uncertain = true // the claim is held, and the script finds it
		return false
	}
	r, ok := record.Parse(c.record())
	switch {
	case !ok && c.found != nil: // deleted meanwhile, longer than a claim in a batch reads, or damaged
		return false
	case !ok:
		c.err = errUnreadable
	case !r.Forgotten && r.Fingerprint != n.request.Fingerprint:
		n.result = store.ClaimResult{Outcome: store.Mismatch}
	case r.Completed && !r.Separate:
		n.result = store.ClaimResult{Outcome: store.Completed, Payload: r.Payload}
	default: // the script knows who owns it, whether it lapsed, and whether its payload is still replayed
		c.bothKeys = r.Separate
		return false
	}
	return true
}

// tooLong reports whether more than nine tenths of a lease are over, by the clock that
// shows more time: the monotonic clock stops while a machine sleeps, and the wall clock
// may be set back.
func tooLong(lease, monotonic, wall time.Duration) bool {
	return max(monotonic, wall) > lease/10*9
}

// refusesWrites reports whether the server refused a command because it takes no writes
// at present, and would execute one that only reads.
func refusesWrites(err error) bool {
	return redis.HasErrorPrefix(err, "OOM ") || redis.HasErrorPrefix(err, "MISCONF ") || redis.HasErrorPrefix(err, "NOREPLICAS ")
}
