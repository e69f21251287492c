package broken

import (
	"bytes"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// When a flaw applies.
func always(*call) bool        { return true }
func notDone(c *call) bool     { return c.done == nil }
func lapsedOwner(c *call) bool { return c.own() && c.lapsed(c.now) }
func formerOwner(c *call) bool { return c.former() && c.done == nil }
func nothing(c *call) bool     { return !c.seen(c.now) }
func saidUnknown(c *call) bool { return c.own() && c.reason != "" }

func running(c *call) bool   { return c.live(c.now) }
func hasLapsed(c *call) bool { return c.lapsed(c.now) }

func runningOwner(c *call) bool { return c.own() && running(c) }
func takesOver(c *call) bool    { return hasLapsed(c) && !c.own() }
func done(c *call) bool         { return c.done != nil }

// grants answers a claim that was refused.
func (c *call) grants() {
	c.got = store.ClaimResult{Outcome: store.Claimed, Attempt: c.granted.Attempt + 1, Fence: c.granted.Fence + 1, Remaining: c.claim.Lease}
}

// refuses answers a claim that was granted.
func (c *call) refuses(o store.Outcome) {
	c.got = store.ClaimResult{Outcome: o}
	if o == store.InProgress {
		c.got.Remaining = time.Millisecond
	}
}

// grants and denies make another answer of a claim's, when it is the first.
func grants(from store.Outcome, when func(*call) bool) hook {
	return flips(claim, func(c *call) {
		if c.got.Outcome == from && when(c) {
			c.grants()
		}
	})
}

func denies(to store.Outcome, when func(*call) bool) hook {
	return flips(claim, func(c *call) {
		if when(c) {
			c.refuses(to)
		}
	})
}

// swapsClaim changes a claim when it meets a record as it is.
func swapsClaim(when func(*call) bool, do func(*call)) hook {
	return swaps(claim, func(c *call) {
		if when(c) {
			do(c)
		}
	})
}

// forgets removes a record in whose place a call should find it.
func forgets(hook func(op, func(*call)) hook, op op, when func(*call) bool) hook {
	return hook(op, func(c *call) {
		if when(c) {
			c.forget(*c.id)
		}
	})
}

// sameRequest swaps the fingerprint of a claim for that of the record.
func sameRequest(when func(*call) bool) hook {
	return swapsClaim(when, func(c *call) { c.claim.Fingerprint = c.last.Fingerprint })
}

// atLeast is a duration that a store accepts.
func atLeast(d time.Duration) time.Duration {
	return min(max(d, store.MinDuration), store.MaxDuration)
}

var claimFlaws = []storeFlaw{
	flawed("attempts-from-zero", "counts attempts from 0", "claim-first", flips(claim, func(c *call) { c.got.Attempt-- })),
	flawed("no-exclusion", "grants every claim of an attempt in progress", "claim-in-progress", grants(store.InProgress, always)),
	flawed("remaining-of-caller", "answers InProgress with the lease that the caller asked for", "claim-in-progress-remaining", flips(claim, func(c *call) {
		if c.got.Outcome == store.InProgress {
			c.got.Remaining = c.claim.Lease
		}
	})),
	flawed("progress-before-fingerprint", "looks at the progress before the fingerprint", "claim-mismatch-in-flight", sameRequest(running)),
	flawed("completed-before-fingerprint", "replays before it looks at the fingerprint", "claim-mismatch-completed", sameRequest(done)),
	flawed("fingerprint-prefix", "compares the first 16 bytes of fingerprints", "claim-fingerprint-bytes", swaps(claim, func(c *call) { clear(c.claim.Fingerprint[16:]) })),
	flawed("scope-is-identity", "compares ClaimRequest.Scope with that of the first claim", "claim-scope",
		denies(store.Mismatch, func(c *call) bool { return c.seen(c.now) && c.claim.Scope != c.first.Scope })),
	flawed("refused-claim-extends", "writes the lease of a claim that it refuses", "claim-refused-changes-nothing", flips(claim, func(c *call) {
		if c.got.Outcome == store.InProgress {
			_, _ = c.right.Renew(c.ctx, []store.RenewRequest{{ID: *c.id, Owner: c.owner, Lease: c.claim.Lease}})
		}
	})),
	flawed("owner-runs-again", "grants the claim of an owner that completed", "claim-completed", grants(store.Completed, (*call).own)),
	flawed("claim-not-repeatable", "answers InProgress to the owner itself", "claim-repeat",
		denies(store.InProgress, func(c *call) bool { return c.again() && c.got.Remaining > 0 })),
	flawed("owners-per-connection", "knows an owner on the connection of its claim only", "claim-repeat-anywhere",
		denies(store.InProgress, func(c *call) bool { return c.again() && c.Store.handle != c.known.handle })),
	flawed("repeat-keeps-lease", "leaves the lease as it is when the owner claims again", "claim-repeat-starts-anew",
		swapsClaim(runningOwner, func(c *call) { c.claim.Lease = atLeast(c.lease.Sub(c.now)) })),
	flawed("claim-not-atomic", "looks, waits, and then creates the record", "race-first", swapsClaim(nothing, (*call).pauseAndForget)),
	flawed("takeover-not-atomic", "looks, waits, and then takes over", "race-takeover", swapsClaim(takesOver, func(c *call) {
		if c.pause(); running(c) { // as there was one to take over, the other attempt goes
			c.forget(*c.id)
		}
	})),
	flawed("takeover-of-gone", "looks, waits, and then writes the next attempt although the record was released", "race-release",
		swapsClaim(takesOver, func(c *call) { c.pause(); c.index = 2 }), flips(claim, func(c *call) { c.got.Attempt = max(c.got.Attempt, min(c.index, 2*c.got.Attempt)) })),
	flawed("takeover-keeps-fence", "gives the new attempt the fence of the old one", "takeover", flips(claim, func(c *call) {
		if c.got.Attempt > 1 {
			c.got.Fence = c.granted.Fence
		}
	})),
	flawed("takeover-keeps-validity", "leaves the validity as it is at a takeover", "takeover-validity",
		swapsClaim(hasLapsed, func(c *call) { c.claim.Retention, c.claim.Horizon = atLeast(c.valid.Sub(c.now)), 0 })),
	flawed("takeover-unasked", "takes over without Takeover", "takeover-refused", swaps(claim, func(c *call) { c.claim.Takeover = true })),
	flawed("takeover-once-too-often", "takes over at MaxAttempts", "takeover-max-attempts",
		swapsClaim(func(c *call) bool { return c.claim.MaxAttempts > 0 }, func(c *call) { c.claim.MaxAttempts++ })),
	flawed("takeover-ignores-fingerprint", "takes over for another request", "takeover-binding", sameRequest(hasLapsed)),
	flawed("takeover-of-completed", "takes over a completed record whose lease would have lapsed", "takeover-never-of-completed",
		grants(store.Completed, func(c *call) bool { return !c.now.Before(c.lease) })),
	flawed("lapsed-owner-refused", "answers Lapsed to the owner of the lapsed attempt itself", "takeover-own",
		denies(store.Lapsed, func(c *call) bool { return c.again() && c.got.Remaining <= 0 && !c.claim.Takeover })),
	flawed("former-owner-claims", "grants claims to every former owner", "takeover-own-after-rival", grants(store.InProgress, formerOwner)),
	flawed("lease-early", "ends leases halfway", "takeover-not-early", swaps(claim, func(c *call) { c.claim.Lease = atLeast(c.claim.Lease / 2) })),
	flawed("lease-one-instant-longer", "takes a lease that ends now for live", "takeover-at-the-end", swaps(claim, func(c *call) { c.claim.Lease = atLeast(c.claim.Lease + 1) }),
		flips(claim, func(c *call) { c.got.Remaining = min(c.got.Remaining, c.claim.Lease-1) })),
}

// keeps changes the payload that is kept.
func keeps(change func(c *call, payload []byte) []byte) hook {
	return swaps(complete, func(c *call) { c.complete.Payload = change(c, c.complete.Payload) })
}

// replays changes the payload that is replayed.
func replays(change func(*call) []byte) hook {
	return flips(claim, func(c *call) {
		if c.got.Outcome == store.Completed {
			c.got.Payload = change(c)
		}
	})
}

// endsEarlier forgets a payload before its retention has ended.
func endsEarlier(end func(*call) time.Time) hook {
	return flips(claim, func(c *call) {
		if c.got.Outcome == store.Completed && !c.now.Before(end(c)) {
			c.refuses(store.Expired)
		}
	})
}

var completeFlaws = []storeFlaw{
	flawed("complete-unfenced", "completes for any owner in any state", "complete-once", impersonates(complete, always)),
	flawed("complete-state-only", "completes what is in progress for any owner", "complete-not-owner", impersonates(complete, notDone)),
	flawed("complete-by-former-owner", "completes for owners that were taken over", "complete-zombie", impersonates(complete, formerOwner)),
	flawed("complete-resurrects", "creates the record that it is told to complete", "complete-after-release", accepts(complete, store.ErrLeaseLost, nothing)),
	flawed("complete-overwrites", "keeps the payload of the last completion", "complete-repeat",
		flips(complete, func(c *call) { c.note(*c.id, func(k *known) { k.done = c.complete }) }), replays(func(c *call) []byte { return c.done.Payload })),
	flawed("complete-not-repeatable", "answers ErrLeaseLost to a repeated completion", "complete-repeat", drops(complete, store.ErrLeaseLost, done)),
	flawed("complete-late-refused", "refuses the completion of a lapsed attempt that nobody took over", "complete-late", drops(complete, store.ErrLeaseLost, lapsedOwner)),
	flawed("complete-unseen", "completes a record that is not seen any more", "complete-unseen",
		accepts(complete, store.ErrLeaseLost, func(c *call) bool { return c.own() && nothing(c) })),
	flawed("complete-not-atomic", "looks, waits, and then completes", "race-late-completion", swaps(complete, func(c *call) {
		if c.own() && notDone(c) {
			c.pause()
			*c.from = c.owner
		}
	})),
	flawed("complete-empty-is-nothing", "takes an empty payload for none", "payload-empty", drops(complete, nil, func(c *call) bool { return len(c.complete.Payload) == 0 })),
	flawed("retention-from-claim", "counts the retention of a response from the claim", "retention-from-completion",
		endsEarlier(func(c *call) time.Time { return c.at.Add(c.done.Retention) })),
	flawed("retention-never-shrinks", "keeps a response for the longer retention of its claim", "retention-ends",
		swaps(complete, func(c *call) { c.complete.Retention = max(c.complete.Retention, c.last.Retention) })),
	flawed("payload-ends-at-nul", "cuts a payload at its first zero byte", "payload-all-bytes", keeps(func(_ *call, p []byte) []byte {
		p, _, _ = bytes.Cut(p, []byte{0})
		return p
	})),
	flawed("payload-trimmed", "trims white space off payloads", "payload-lookalikes", keeps(func(_ *call, p []byte) []byte { return bytes.TrimSpace(p) })),
	flawed("payload-cut", "cuts payloads at 64 KiB", "payload-sizes", keeps(func(_ *call, p []byte) []byte { return p[:min(len(p), 64<<10)] })),
	flawed("payload-of-caller", "keeps the buffer of the caller", "payload-buffer", replays(func(c *call) []byte { return c.done.Payload })),
	flawed("payload-shared", "has one buffer for the payloads of all IDs", "payload-own", keeps(func(c *call, p []byte) []byte {
		c.buffer = append(c.buffer[:0], p...)
		return p
	}), replays(func(c *call) []byte { return c.buffer })),
	flawed("complete-invalid-accepted", "does not validate completions", "invalid-complete", accepts(complete, store.ErrInvalid, always)),
}

var releaseFlaws = []storeFlaw{
	flawed("release-unfenced", "releases for any owner", "release-not-owner", impersonates(release, notDone)),
	flawed("release-by-former-owner", "releases for owners that were taken over", "release-zombie", impersonates(release, formerOwner)),
	flawed("release-of-completed", "releases what its owner completed", "release-completed", forgets(flips, release, func(c *call) bool { return c.own() && done(c) })),
	flawed("release-keeps-record", "ends the lease instead of forgetting the record", "release-forgets", swaps(release, func(c *call) {
		if c.skipped = c.own() && running(c); c.skipped {
			_, _ = c.right.Renew(c.ctx, []store.RenewRequest{{ID: *c.id, Owner: c.owner, Lease: store.MinDuration}})
		}
	})),
	flawed("release-keeps-attempts", "goes on counting attempts after a release", "release-attempts",
		flips(release, func(c *call) { c.note(*c.id, func(k *known) { k.attempts++ }) }), flips(claim, func(c *call) {
			if c.got.Outcome == store.Claimed {
				c.got.Attempt += c.attempts
			}
		})),
	flawed("release-nothing-fails", "answers ErrLeaseLost when there is nothing to release", "release-nothing", drops(release, store.ErrLeaseLost, nothing)),
	flawed("release-lapsed-ignored", "does not release a lapsed attempt", "release-lapsed", drops(release, nil, lapsedOwner)),
	flawed("fence-restarts", "starts fences again when a record goes", "release-fence", flips(claim, func(c *call) { c.got.Fence = uint64(c.got.Attempt) })),
}

// renews answers a renewal without executing it, and isRenewed after it was.
func renews(status store.RenewStatus, when func(*call) bool) hook {
	return swaps(renew, func(c *call) {
		if when(c) {
			c.skipped, c.status = true, status
		}
	})
}

func isRenewed(from, to store.RenewStatus, when func(*call) bool) hook {
	return flips(renew, func(c *call) {
		if c.status == from && when(c) {
			c.err, c.status = nil, to
		}
	})
}

var renewFlaws = []storeFlaw{
	flawed("renew-nothing", "answers Renewed and writes nothing", "renew", renews(store.Renewed, func(c *call) bool { return c.own() && notDone(c) })),
	flawed("renew-only-lengthens", "keeps the longer of two leases", "renew-shorter",
		renews(store.Renewed, func(c *call) bool { return c.own() && c.now.Add(c.renew.Lease).Before(c.lease) })),
	flawed("renew-lapsed-refused", "does not renew a lapsed lease that nobody took over", "renew-lapsed", renews(store.RenewLost, lapsedOwner)),
	flawed("renew-by-anyone", "renews for any owner", "renew-not-owner", impersonates(renew, notDone)),
	flawed("renew-by-former-owner", "renews for owners that were taken over", "renew-zombie", impersonates(renew, formerOwner)),
	flawed("renew-forgets-completion", "answers RenewLost to the owner that completed", "renew-completed", isRenewed(store.RenewCompleted, store.RenewLost, always)),
	flawed("renew-creates", "creates the record that it is told to renew", "renew-nothing", isRenewed(store.RenewLost, store.Renewed, nothing)),
	flawed("renew-unseen", "renews a record that is not seen any more", "renew-unseen",
		isRenewed(store.RenewLost, store.Renewed, func(c *call) bool { return c.own() && nothing(c) })),
	flawed("renew-extends-validity", "moves the validity with the lease", "renew-validity", flips(renew, func(c *call) {
		if again := c.last; c.status == store.Renewed {
			again.Lease, again.Retention = c.renew.Lease, 2*c.renew.Lease
			_, _ = c.right.Claim(c.ctx, again)
		}
	})),
	flawed("renew-within-validity", "ends a renewed lease with the validity", "retention-renewed-lease",
		swaps(renew, func(c *call) { c.renew.Lease = min(c.renew.Lease, atLeast(c.valid.Sub(c.now))) })),
	flawed("renew-stops-at-lost", "answers RenewLost to all entries after one that is lost", "renew-batch", renews(store.RenewLost, func(c *call) bool { return c.lost })),
	flawed("renew-capped", "renews the first hundred entries of a batch", "renew-many", renews(store.RenewLost, func(c *call) bool { return c.index >= 100 })),
	flawed("renew-empty-refused", "refuses an empty batch", "renew-empty", drops(renewAll, store.ErrInvalid, func(c *call) bool { return *c.limit == 0 })),
	flawed("renew-invalid-accepted", "does not validate renewals", "invalid-renew", isRenewed(0, store.Renewed, always)),
}

var unknownFlaws = []storeFlaw{
	flawed("unknown-runs", "leaves the lease of an attempt whose outcome is unknown", "unknown-claim", drops(unknown, nil, (*call).own)),
	flawed("unknown-taken-over", "takes over an attempt whose outcome is unknown", "unknown-claim",
		grants(store.Lapsed, func(c *call) bool { return c.reason != "" && !c.own() })),
	flawed("unknown-owner-claims", "grants the claim of the owner that said that the outcome is unknown", "unknown-claim-own", grants(store.Lapsed, saidUnknown)),
	flawed("unknown-before-fingerprint", "answers Lapsed before it looks at the fingerprint", "unknown-mismatch",
		denies(store.Lapsed, func(c *call) bool { return c.got.Outcome == store.Mismatch && c.reason != "" })),
	flawed("unknown-renewed", "renews an attempt whose outcome is unknown", "unknown-ends", isRenewed(store.RenewLost, store.Renewed, saidUnknown)),
	flawed("unknown-completes", "completes an attempt whose outcome is unknown", "unknown-ends", accepts(complete, store.ErrLeaseLost, saidUnknown)),
	flawed("unknown-releases", "releases an attempt whose outcome is unknown", "unknown-ends", forgets(flips, release, saidUnknown)),
	flawed("unknown-unfenced", "takes the word of any owner that the outcome is unknown", "unknown-not-owner", impersonates(unknown, notDone)),
	flawed("unknown-by-former-owner", "takes the word of owners that were taken over", "unknown-zombie", impersonates(unknown, formerOwner)),
	flawed("unknown-of-completed", "makes the outcome of a completed record unknown", "unknown-completed", accepts(unknown, store.ErrLeaseLost, done)),
	flawed("unknown-creates", "creates the record whose outcome is unknown", "unknown-nothing", accepts(unknown, store.ErrLeaseLost, nothing)),
	flawed("unknown-not-repeatable", "answers ErrLeaseLost to a repeated Unknown", "unknown-repeat", drops(unknown, store.ErrLeaseLost, saidUnknown)),
	flawed("unknown-reason-repeated", "keeps the last reason", "unknown-repeat",
		flips(unknown, func(c *call) { c.note(*c.id, func(k *known) { k.reason = c.unknown.Reason }) }),
		flips(shown, func(c *call) { c.record.Reason = c.reason })),
	flawed("unknown-keeps-validity", "leaves the validity of the claim", "unknown-validity",
		forgets(swaps, claim, func(c *call) bool { return c.reason != "" && !c.now.Before(c.noted) })),
	flawed("unknown-lapsed-refused", "refuses the word of an owner whose lease has run out", "unknown-late", drops(unknown, store.ErrLeaseLost, lapsedOwner)),
	flawed("unknown-hidden", "shows an unknown outcome as a lapse", "unknown-inspected", flips(shown, func(c *call) {
		if c.record.State == store.StateUnknown {
			c.record.State, c.record.Reason = store.StateLapsed, ""
		}
	})),
	flawed("unknown-not-resolved", "does not resolve an unknown outcome", "unknown-resolve", drops(resolve, store.ErrRecordChanged, func(c *call) bool { return c.reason != "" })),
	flawed("unknown-not-signalled", "does not signal that an outcome is unknown", "unknown-watch", swaps(unknown, func(c *call) { c.silent = true })),
	flawed("unknown-invalid-accepted", "does not validate reasons", "unknown-invalid", accepts(unknown, store.ErrInvalid, always)),
}
