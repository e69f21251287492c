package broken

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// shows changes a record that an operator sees in one of some states, or in any.
func shows(change func(c *call, r *store.Record), in ...store.RecordState) hook {
	return flips(shown, func(c *call) {
		if len(in) == 0 || slices.Contains(in, c.record.State) {
			change(c, c.record)
		}
	})
}

// cuts counts a duration in 32 bits of milliseconds.
func cuts(d *time.Duration) {
	*d = time.Duration(int32(d.Milliseconds())) * time.Millisecond //nolint:gosec // the overflow is the flaw
}

func showsResolved(change func(*store.Record)) hook {
	return shows(func(_ *call, r *store.Record) {
		if r.Resolved {
			change(r)
		}
	})
}

func swapsHorizon(change func(*store.CompleteRequest)) hook {
	return swaps(complete, func(c *call) {
		if c.complete.Horizon > 0 {
			change(c.complete)
		}
	})
}

// describesAsBefore keeps the description of the record for a claim without one.
func describesAsBefore(when func(*call) bool) hook {
	return swapsClaim(when, func(c *call) { c.claim.Description = cmp.Or(c.claim.Description, c.last.Description) })
}

func unreadable(c *call) bool { return c.damaged[*c.id] > 0 }

func describesNothing(_ *call, r *store.Record) { r.Description = "" }

// cutDescription makes a description valid that is too long.
func cutDescription(d *string) { *d = (*d)[:min(len(*d), store.MaxDescription)] }

var acceptsClaims = flips(claim, func(c *call) {
	if errors.Is(c.err, store.ErrInvalid) {
		c.err = nil
		c.grants()
	}
})

// Flaws of records, time, errors and descriptions.
var recordFlaws = []storeFlaw{
	flawed("id-cut", "ignores the last byte of IDs", "claim-independent-ids", swaps(anything, func(c *call) { c.id[len(c.id)-1] = 0 })),
	flawed("lapsed-seen-forever", "sees lapsed attempts past their validity", "retention-unseen",
		swaps(claim, func(c *call) { c.claim.Retention = store.MaxDuration - c.claim.Horizon })),
	flawed("unseen-has-its-owner", "grants the claim of its owner on what is not seen as if it were", "retention-unseen-own", flips(claim, func(c *call) {
		if c.own() && nothing(c) {
			c.got = c.granted
			c.got.Remaining = c.lease.Sub(c.now)
		}
	})),
	flawed("release-unseen-takes-next", "releases the next attempt in the place of one that is not seen", "retention-unseen-release",
		impersonates(release, func(c *call) bool { return slices.Contains(c.unseen, *c.from) })),
	flawed("live-lease-ends-with-validity", "forgets live attempts past the retention of their claim", "retention-live-lease",
		swaps(claim, func(c *call) { c.claim.Lease = min(c.claim.Lease, c.claim.Retention) })),
	flawed("valid-one-instant-longer", "takes a record whose validity ends now for valid", "retention-at-the-end",
		swaps(complete, func(c *call) { c.complete.Retention = atLeast(c.complete.Retention + 1) })),
	flawed("fence-restarts-with-record", "starts fences again after a retention", "retention-fence", flips(claim, func(c *call) {
		if c.got.Attempt == 1 && done(c) {
			c.got.Fence = 1
		}
	})),
	flawed("long-durations-overflow", "counts durations in 32 bits of milliseconds", "durations-extreme",
		swaps(claim, func(c *call) { cuts(&c.claim.Lease) }), swaps(complete, func(c *call) { cuts(&c.complete.Retention) })),
	flawed("claim-invalid-accepted", "does not validate claims", "invalid-claim", acceptsClaims),
	flawed("label-invalid-accepted", "does not validate labels", "record-label-refused", acceptsClaims),
	flawed("error-raw", "returns errors of its driver", "error-text", flips(anything, func(c *call) {
		if errors.Is(c.err, store.ErrLeaseLost) {
			c.err = errors.New("no rows in result set")
		}
	})),
	flawed("error-tells-payload", "puts payloads into its errors", "error-text", flips(complete, func(c *call) {
		if c.err != nil {
			c.err = fmt.Errorf("%w: cannot keep %q", c.err, c.complete.Payload)
		}
	})),
	flawed("hangs-with-ended-context", "does not notice that a context has ended", "context-ended", swaps(anything, func(c *call) {
		if c.ctx.Err() != nil {
			time.Sleep(time.Hour) //nolint:forbidigo // the wait is the flaw
		}
	})),
	flawed("corrupt-is-new", "runs what it cannot read as new", "corrupt-version", forgets(swaps, claim, unreadable)),
	flawed("corrupt-is-released", "deletes what it cannot read", "corrupt-truncated", forgets(swaps, release, unreadable)),
	flawed("description-forgotten", "forgets the description at the completion", "description", shows(describesNothing, store.StateCompleted)),
	flawed("description-not-listed", "lists records without their description", "description", lists(describesNothing)),
	flawed("description-of-first", "keeps the description of the first claim", "description-takeover",
		shows(func(c *call, r *store.Record) { r.Description = c.first.Description })),
	flawed("description-stays", "keeps the description of the claim before, where a takeover has none", "description-takeover", describesAsBefore(hasLapsed)),
	flawed("description-not-resolved", "forgets the description of what an operator resolves", "description-takeover",
		showsResolved(func(r *store.Record) { r.Description = "" })),
	flawed("description-not-unknown", "forgets the description when the outcome is unknown", "description-unknown", shows(describesNothing, store.StateUnknown)),
	flawed("description-outlives", "keeps the description of a record that has ended", "description-ends", describesAsBefore(nothing)),
	flawed("description-expires", "forgets the description when the retention ends", "description-ends", shows(describesNothing, store.StateExpired)),
	flawed("description-cut", "cuts what is too long for a description", "description-refused",
		swaps(claim, func(c *call) { cutDescription(&c.claim.Description) }), swaps(complete, func(c *call) { cutDescription(&c.complete.Description) })),
	flawed("fingerprint-hidden", "does not show the fingerprint", "record-fingerprint",
		shows(func(_ *call, r *store.Record) { r.Fingerprint = store.Fingerprint{} })),
}

// Flaws of the policy that a record keeps.
var policyFlaws = []storeFlaw{
	flawed("preset-of-retry", "takes a lapsed attempt over unless the retry is AtMostOnce", "policy-lapsed", swaps(claim, func(c *call) {
		c.claim.Takeover, c.claim.AtMostOnce = c.claim.Takeover && !(c.claim.AtMostOnce && hasLapsed(c)), false
	})),
	flawed("preset-forgotten", "takes over a lapsed attempt of AtMostOnce", "policy-lapsed", swaps(claim, func(c *call) { c.claim.AtMostOnce = false })),
	flawed("takeover-keeps-policy", "keeps the policy of the first claim", "policy-takeover", swapsClaim(hasLapsed, func(c *call) { c.claim.Policy = c.last.Policy })),
	flawed("retention-of-retry", "replays for the retention of the retry", "horizon-of-record",
		endsEarlier(func(c *call) time.Time { return c.doneAt.Add(c.claim.Retention) })),
	flawed("replayed-one-instant-longer", "replays at the instant at which the retention ends", "horizon-at-the-end",
		swapsHorizon(func(r *store.CompleteRequest) { r.Retention, r.Horizon = r.Retention+1, r.Horizon-1 })),
	flawed("horizon-replays", "replays until the horizon ends", "horizon",
		swaps(complete, func(c *call) { c.complete.Retention, c.complete.Horizon = c.complete.Remembered(), 0 })),
	flawed("horizon-forgotten", "forgets a completed record when its retention ends", "horizon", swaps(complete, func(c *call) { c.complete.Horizon = 0 })),
	flawed("horizon-after-completion", "counts the horizon of completed records only", "horizon-of-attempt", swaps(claim, func(c *call) { c.claim.Horizon = 0 })),
	flawed("inspect-shows-expired", "shows an expired record as completed, with its payload", "horizon-inspected", shows(func(c *call, r *store.Record) {
		r.State, r.Payload, r.Size = store.StateCompleted, c.done.Payload, len(c.done.Payload)
	}, store.StateExpired)),
	flawed("purge-expired", "purges records whose retention has ended", "horizon-purge", purges(func(c *call, k *known) bool {
		return k.done != nil && !c.now.Before(k.doneAt.Add(k.done.Retention))
	})),
	flawed("resolve-ends-horizon", "ends the horizon at a resolution", "resolve-horizon",
		swaps(claim, func(c *call) { c.claim.Retention, c.claim.Horizon = c.claim.Remembered(), 0 })),
	flawed("resolve-shortens", "ends a resolved record earlier than it would have ended", "resolve-remembers",
		forgets(swaps, claim, func(c *call) bool { return !c.resolved.IsZero() && !c.now.Before(c.resolved) })),
	flawed("policy-hidden-at-end", "forgets the policy at the completion", "record-policy",
		shows(func(_ *call, r *store.Record) { r.Policy = store.Policy{} }, store.StateCompleted)),
	flawed("horizon-never-ends", "remembers a record with a horizon for ever", "horizon-ends",
		swapsHorizon(func(r *store.CompleteRequest) { r.Horizon = store.MaxDuration - r.Retention })),
	flawed("resolve-forgets-policy", "forgets the policy of what an operator resolves", "record-policy-takeover",
		showsResolved(func(r *store.Record) { r.Policy = store.Policy{} })),
}

// lists changes the records of a page.
func lists(change func(*call, *store.Record)) hook {
	return flips(list, func(c *call) {
		for i := range c.page.Records {
			change(c, &c.page.Records[i])
		}
	})
}

// selects lists, of all records, those that a flaw selects.
func selects(change func(*store.Query)) hook {
	return swaps(list, func(c *call) { change(c.query) })
}

// adds lists records of other labels as well.
func adds(which func(q *store.Query, label string) bool) hook {
	return flips(list, func(c *call) {
		for id, k := range c.Backing.known {
			if which(c.query, k.last.Label) {
				c.adds(id)
			}
		}
	})
}

// adds adds a record to a page.
func (c *call) adds(id store.ID) {
	c.page.Records = append(c.page.Records, store.Record{ID: id, State: store.StateCompleted})
	c.page.Scanned++
}

// purges forgets records that a purge should keep.
func purges(when func(*call, *known) bool) hook {
	return swaps(purge, func(c *call) {
		for id, k := range c.Backing.known {
			if when(c, k) {
				c.forget(id)
			}
		}
	})
}

// decides changes what an operator decided on a record that is in a state.
func decides(when func(*call) bool, change func(c *call, r *store.Resolution, now *store.Record)) hook {
	return swaps(resolve, func(c *call) {
		if current, err := c.right.Inspect(c.ctx, *c.id); err == nil && when(c) {
			change(c, c.resolve, &current)
		}
	})
}

func anyFence(_ *call, r *store.Resolution, now *store.Record) { r.Fence = now.Fence }

// asItIs decides as an operator who saw the current state.
func asItIs(_ *call, r *store.Resolution, now *store.Record) { r.State = now.State }

func asLapsed(_ *call, r *store.Resolution, _ *store.Record) { r.State = store.StateLapsed }

func endedPayload(c *call) bool {
	return c.done != nil && !c.now.Before(c.doneAt.Add(c.done.Retention))
}

// Flaws of the abilities, and in the view of operators.
var operatorFlaws = []storeFlaw{
	flawed("inspect-unseen", "shows records that are not seen any more", "inspect-nothing", flips(inspect, func(c *call) {
		if !c.owner.IsZero() && errors.Is(c.err, store.ErrNotFound) {
			*c.record, c.err = store.Record{ID: *c.id, State: store.StateCompleted}, nil
		}
	})),
	flawed("inspect-hides-payload", "shows completed records without their payload", "inspect-completed", shows(func(_ *call, r *store.Record) { r.Payload = nil })),
	flawed("inspect-hides-lapse", "shows lapsed attempts as live until their validity ends", "inspect-in-progress",
		shows(func(_ *call, r *store.Record) { r.State, r.Lease = store.StateRunning, r.Validity }, store.StateLapsed)),
	flawed("inspect-ends-with-claim", "shows the validity of live attempts without their lease", "inspect-live-beyond-retention",
		shows(func(c *call, r *store.Record) { r.Validity = c.valid.Sub(c.now) }, store.StateRunning)),
	flawed("list-beyond-limit", "lists more than it was asked for", "list", selects(func(q *store.Query) { q.Limit = store.MaxPage })),
	flawed("list-unseen", "lists records that are not seen any more", "list", flips(list, func(c *call) {
		for id, k := range c.Backing.known {
			if c.page.Next == "" && !k.owner.IsZero() && !k.seen(c.now) {
				c.adds(id)
			}
		}
	})),
	flawed("resolve-keeps-retention", "keeps a resolved answer for the retention of the claim", "resolve-keep",
		decides(always, func(c *call, r *store.Resolution, _ *store.Record) { r.Retention = c.last.Retention })),
	flawed("resolve-never-forgets", "keeps an empty answer when it is told to forget", "resolve-forget",
		decides(always, func(c *call, r *store.Resolution, _ *store.Record) { r.Forget, r.Retention = false, c.last.Retention })),
	flawed("resolve-keeps-owner", "lets the former owner of a resolved attempt complete", "resolve-owner",
		accepts(complete, store.ErrLeaseLost, func(c *call) bool { return c.own() && !c.resolved.IsZero() })),
	flawed("resolve-any-fence", "resolves whatever has lapsed", "resolve-changed", decides(hasLapsed, anyFence)),
	flawed("resolve-late-reason", "resolves as lapsed what said since that its outcome is unknown", "resolve-forget-attempt",
		decides(func(c *call) bool { return c.reason != "" }, asItIs)),
	flawed("resolve-live", "resolves a live attempt", "resolve-changed", decides(running, func(c *call, r *store.Resolution, now *store.Record) {
		if c.skipped = r.Fence == now.Fence; c.skipped {
			c.forget(*c.id)
		}
	})),
	flawed("purge-live-lease", "purges live attempts past the retention of their claim", "purge-keeps",
		purges(func(c *call, k *known) bool { return k.live(c.now) && !c.now.Before(k.valid) })),
	flawed("purge-nothing", "purges nothing", "purge-deletes", drops(purge, nil, always)),
	flawed("purge-any-limit", "takes any limit of a purge", "purge-limit", accepts(purge, store.ErrInvalid, always)),
	flawed("purge-not-atomic", "looks, waits, and then purges", "race-purge", swaps(purge, func(c *call) {
		var dead []store.ID
		for id, k := range c.Backing.known {
			if !k.seen(c.now) {
				dead = append(dead, id)
			}
		}
		c.pause()
		for _, id := range dead {
			c.forget(id)
		}
	})),
	flawed("watch-misses-completion", "does not wake watches at a completion", "watch-completion", swaps(complete, func(c *call) { c.silent = true })),
	flawed("watch-misses-release", "does not wake watches at a release", "watch-release", swaps(release, func(c *call) { c.silent = true })),
	flawed("watch-stops-all", "ends all watches of an ID when one is stopped", "watch-stop", flips(unwatch, func(c *call) { delete(c.watches, *c.id) })),
	flawed("findings-without-details", "reports findings without a text", "check-findings", flips(check, func(c *call) { c.findings[0].Detail = "" })),
	flawed("usage-named-twice", "names a resource twice", "usage", flips(meter, func(c *call) { c.usage = append(c.usage, c.usage[0]) })),
	flawed("takeover-keeps-time", "keeps the instant of the first claim", "record-times-takeover",
		shows(func(c *call, r *store.Record) { r.ClaimedAt = c.firstAt })),
	flawed("renew-moves-time", "takes a renewal for the instant of the claim", "record-times",
		shows(func(c *call, r *store.Record) { r.ClaimedAt = c.at }, store.StateRunning)),
	flawed("completed-at-repeated", "takes a repeated completion for the instant of the completion", "record-times",
		flips(complete, func(c *call) { c.note(*c.id, func(k *known) { k.noted = c.now }) }), shows(func(c *call, r *store.Record) { r.CompletedAt = c.noted }, store.StateCompleted)),
	flawed("size-inspected-only", "lists records without the size of their payload", "record-size", lists(func(_ *call, r *store.Record) { r.Size = 0 })),
	flawed("resolved-hidden", "does not tell a resolved record from another", "record-resolved", shows(func(_ *call, r *store.Record) { r.Resolved = false })),
	flawed("known-not-fenced", "takes the word of a completion that has the fields of its claim", "complete-known",
		impersonates(complete, func(c *call) bool { return c.complete.Attempt > 0 })),
	flawed("known-written", "writes the record of a completion that has the fields of its claim, whatever is there", "complete-zombie",
		accepts(complete, store.ErrLeaseLost, func(c *call) bool { return c.complete.Attempt > 0 })),
	flawed("list-all-states", "lists every state", "list-states", selects(func(q *store.Query) { q.States = 0 })),
	flawed("list-label-prefix", "lists labels that start with the one asked for", "list-label", adds(func(q *store.Query, label string) bool {
		return q.Label != "" && label != q.Label && strings.HasPrefix(label, q.Label)
	})),
	flawed("list-shows-probes", "lists the records of probes unasked", "list-label", adds(func(q *store.Query, label string) bool {
		return q.Label == "" && label == store.ProbeLabel
	})),
	flawed("list-all-ages", "lists every age", "list-age", selects(func(q *store.Query) { q.OlderThan = 0 })),
	flawed("list-all-ids", "lists every ID", "list-digits", selects(func(q *store.Query) { q.Digits = "" })),
	flawed("list-one-page", "ends a listing with its first page", "list-pages", flips(list, func(c *call) { c.page.Next = "" })),
	flawed("list-skips", "leaves out a record between two pages", "list-pages", flips(list, func(c *call) {
		if i := c.page.Scanned; c.page.Next != "" {
			c.page.Next = cursorStart + c.ids[i].String()
		}
	})),
	flawed("list-stops-at-nothing", "ends a listing at a page in which nothing matches", "list-finds", flips(list, func(c *call) {
		if len(c.page.Records) > 0 && !slices.Contains(c.ids[:min(len(c.ids), c.query.Limit)], c.page.Records[0].ID) {
			*c.page = store.Page{}
		}
	})),
	flawed("list-hides-unreadable", "leaves out of a listing what it cannot read", "unreadable-version", flips(list, func(c *call) {
		c.page.Records = slices.DeleteFunc(c.page.Records, func(r store.Record) bool { return r.State == store.StateUnreadable })
	})),
	flawed("count-hides-unreadable", "leaves out of a count what it cannot read", "unreadable-version", flips(count, func(c *call) {
		c.page.Records = slices.DeleteFunc(c.page.Records, func(r store.Record) bool { return r.State == store.StateUnreadable })
	})),
	flawed("count-shows-probes", "counts the records of probes", "count", flips(count, func(c *call) {
		for id, k := range c.Backing.known {
			if k.last.Label == store.ProbeLabel {
				c.page.Records = append(c.page.Records, store.Record{ID: id, State: store.StateCompleted, Policy: k.last.Policy})
			}
		}
	})),
	flawed("count-forgets-expiry", "counts expired records as completed", "count", flips(count, func(c *call) {
		for i := range c.page.Records {
			if r := &c.page.Records[i]; r.State == store.StateExpired {
				r.State = store.StateCompleted
			}
		}
	})),
	flawed("cursor-of-anyone", "takes any text for a cursor", "list-cursor", accepts(list, store.ErrInvalid, always)),
	flawed("inspect-unreadable-fails", "inspects nothing that it cannot read", "unreadable-version", flips(inspect, func(c *call) {
		if c.record.State == store.StateUnreadable {
			c.err = store.ErrCorrupt
		}
	})),
	flawed("unreadable-forgets-all", "forgets a readable record as unreadable", "resolve-unreadable", swaps(resolve, func(c *call) {
		if c.damaged[*c.id] == 0 && c.resolve.State == store.StateUnreadable && !nothing(c) {
			c.skipped = true
			c.forget(*c.id)
		}
	})),
	flawed("unreadable-any-fence", "forgets what it cannot read, whatever became of it since", "resolve-unreadable", swaps(resolve, func(c *call) {
		if fence := c.damaged[*c.id]; fence > 0 {
			c.resolve.Fence = fence
		}
	})),
	flawed("unreadable-stays", "does not forget what it cannot read", "resolve-unreadable", drops(resolve, store.ErrRecordChanged, unreadable)),
	flawed("completed-stays", "does not forget a result", "resolve-forget-completed", drops(resolve, store.ErrRecordChanged, done)),
	flawed("expired-stays", "does not forget a record whose payload has ended", "resolve-forget-completed", drops(resolve, store.ErrRecordChanged, endedPayload)),
	flawed("forget-any-fence", "forgets a result with any fence", "resolve-forget-seen", decides(done, anyFence)),
	flawed("forget-unseen", "forgets a result for an operator who saw a lapsed attempt", "resolve-changed", decides(done, asItIs)),
	flawed("forget-any-attempt", "forgets an attempt for an operator who saw a result", "resolve-forget-attempt", decides(hasLapsed, asLapsed)),
}
