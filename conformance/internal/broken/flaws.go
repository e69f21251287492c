package broken

// Flaws of Claim.
const (
	attemptsFromZero           Flaw = "attempts-from-zero"
	noExclusion                Flaw = "no-exclusion"
	remainingOfCaller          Flaw = "remaining-of-caller"
	progressBeforeFingerprint  Flaw = "progress-before-fingerprint"
	completedBeforeFingerprint Flaw = "completed-before-fingerprint"
	fingerprintPrefix          Flaw = "fingerprint-prefix"
	scopeIsIdentity            Flaw = "scope-is-identity"
	refusedClaimExtends        Flaw = "refused-claim-extends"
	ownerRunsAgain             Flaw = "owner-runs-again"
	claimNotRepeatable         Flaw = "claim-not-repeatable"
	ownersPerConnection        Flaw = "owners-per-connection"
	repeatKeepsLease           Flaw = "repeat-keeps-lease"
	claimNotAtomic             Flaw = "claim-not-atomic"
	takeoverNotAtomic          Flaw = "takeover-not-atomic"
	takeoverOfGone             Flaw = "takeover-of-gone"
	takeoverKeepsFence         Flaw = "takeover-keeps-fence"
	takeoverKeepsValidity      Flaw = "takeover-keeps-validity"
	takeoverUnasked            Flaw = "takeover-unasked"
	takeoverOnceTooOften       Flaw = "takeover-once-too-often"
	takeoverIgnoresFingerprint Flaw = "takeover-ignores-fingerprint"
	takeoverOfCompleted        Flaw = "takeover-of-completed"
	lapsedOwnerRefused         Flaw = "lapsed-owner-refused"
	formerOwnerClaims          Flaw = "former-owner-claims"
	leaseEarly                 Flaw = "lease-early"
	leaseOneInstantLonger      Flaw = "lease-one-instant-longer"
)

var claimFlaws = []Mutant{
	{attemptsFromZero, "counts attempts from 0", "claim-first"},
	{noExclusion, "grants every claim of an attempt in progress", "claim-in-progress"},
	{remainingOfCaller, "answers InProgress with the lease that the caller asked for", "claim-in-progress-remaining"},
	{progressBeforeFingerprint, "looks at the progress before the fingerprint", "claim-mismatch-in-flight"},
	{completedBeforeFingerprint, "replays before it looks at the fingerprint", "claim-mismatch-completed"},
	{fingerprintPrefix, "compares the first 16 bytes of fingerprints", "claim-fingerprint-bytes"},
	{scopeIsIdentity, "compares ClaimRequest.Scope with that of the first claim", "claim-scope"},
	{refusedClaimExtends, "writes the lease of a claim that it refuses", "claim-refused-changes-nothing"},
	{ownerRunsAgain, "grants the claim of an owner that completed", "claim-completed"},
	{claimNotRepeatable, "answers InProgress to the owner itself", "claim-repeat"},
	{ownersPerConnection, "knows an owner on the connection of its claim only", "claim-repeat-anywhere"},
	{repeatKeepsLease, "leaves the lease as it is when the owner claims again", "claim-repeat-starts-anew"},
	{claimNotAtomic, "looks, waits, and then creates the record", "race-first"},
	{takeoverNotAtomic, "looks, waits, and then takes over", "race-takeover"},
	{takeoverOfGone, "looks, waits, and then writes the next attempt although the record was released", "race-release"},
	{takeoverKeepsFence, "gives the new attempt the fence of the old one", "takeover"},
	{takeoverKeepsValidity, "leaves the validity as it is at a takeover", "takeover-validity"},
	{takeoverUnasked, "takes over without Takeover", "takeover-refused"},
	{takeoverOnceTooOften, "takes over at MaxAttempts", "takeover-max-attempts"},
	{takeoverIgnoresFingerprint, "takes over for another request", "takeover-binding"},
	{takeoverOfCompleted, "takes over a completed record whose lease would have lapsed", "takeover-never-of-completed"},
	{lapsedOwnerRefused, "answers Lapsed to the owner of the lapsed attempt itself", "takeover-own"},
	{formerOwnerClaims, "grants claims to every former owner", "takeover-own-after-rival"},
	{leaseEarly, "ends leases halfway", "takeover-not-early"},
	{leaseOneInstantLonger, "takes a lease that ends now for live", "takeover-at-the-end"},
}

// Flaws of Complete.
const (
	completeUnfenced        Flaw = "complete-unfenced"
	completeStateOnly       Flaw = "complete-state-only"
	completeByFormerOwner   Flaw = "complete-by-former-owner"
	completeResurrects      Flaw = "complete-resurrects"
	completeOverwrites      Flaw = "complete-overwrites"
	completeNotRepeatable   Flaw = "complete-not-repeatable"
	completeLateRefused     Flaw = "complete-late-refused"
	completeUnseen          Flaw = "complete-unseen"
	completeNotAtomic       Flaw = "complete-not-atomic"
	completeEmptyIsNothing  Flaw = "complete-empty-is-nothing"
	retentionFromClaim      Flaw = "retention-from-claim"
	retentionNeverShrinks   Flaw = "retention-never-shrinks"
	payloadEndsAtNUL        Flaw = "payload-ends-at-nul"
	payloadTrimmed          Flaw = "payload-trimmed"
	payloadCut              Flaw = "payload-cut"
	payloadOfCaller         Flaw = "payload-of-caller"
	payloadShared           Flaw = "payload-shared"
	completeInvalidAccepted Flaw = "complete-invalid-accepted"
)

var completeFlaws = []Mutant{
	{completeUnfenced, "completes for any owner in any state", "complete-once"},
	{completeStateOnly, "completes what is in progress for any owner", "complete-not-owner"},
	{completeByFormerOwner, "completes for owners that were taken over", "complete-zombie"},
	{completeResurrects, "creates the record that it is told to complete", "complete-after-release"},
	{completeOverwrites, "keeps the payload of the last completion", "complete-repeat"},
	{completeNotRepeatable, "answers ErrLeaseLost to a repeated completion", "complete-repeat"},
	{completeLateRefused, "refuses the completion of a lapsed attempt that nobody took over", "complete-late"},
	{completeUnseen, "completes a record that is not seen any more", "complete-unseen"},
	{completeNotAtomic, "looks, waits, and then completes", "race-late-completion"},
	{completeEmptyIsNothing, "takes an empty payload for none", "payload-empty"},
	{retentionFromClaim, "counts the retention of a response from the claim", "retention-from-completion"},
	{retentionNeverShrinks, "keeps a response for the longer retention of its claim", "retention-ends"},
	{payloadEndsAtNUL, "cuts a payload at its first zero byte", "payload-all-bytes"},
	{payloadTrimmed, "trims white space off payloads", "payload-lookalikes"},
	{payloadCut, "cuts payloads at 64 KiB", "payload-sizes"},
	{payloadOfCaller, "keeps the buffer of the caller", "payload-buffer"},
	{payloadShared, "has one buffer for the payloads of all IDs", "payload-own"},
	{completeInvalidAccepted, "does not validate completions", "invalid-complete"},
}

// Flaws of Release.
const (
	releaseUnfenced      Flaw = "release-unfenced"
	releaseByFormerOwner Flaw = "release-by-former-owner"
	releaseOfCompleted   Flaw = "release-of-completed"
	releaseKeepsRecord   Flaw = "release-keeps-record"
	releaseKeepsAttempts Flaw = "release-keeps-attempts"
	releaseNothingFails  Flaw = "release-nothing-fails"
	releaseLapsedIgnored Flaw = "release-lapsed-ignored"
	fenceRestarts        Flaw = "fence-restarts"
)

var releaseFlaws = []Mutant{
	{releaseUnfenced, "releases for any owner", "release-not-owner"},
	{releaseByFormerOwner, "releases for owners that were taken over", "release-zombie"},
	{releaseOfCompleted, "releases what its owner completed", "release-completed"},
	{releaseKeepsRecord, "ends the lease instead of forgetting the record", "release-forgets"},
	{releaseKeepsAttempts, "goes on counting attempts after a release", "release-attempts"},
	{releaseNothingFails, "answers ErrLeaseLost when there is nothing to release", "release-nothing"},
	{releaseLapsedIgnored, "does not release a lapsed attempt", "release-lapsed"},
	{fenceRestarts, "starts fences again when a record goes", "release-fence"},
}

// Flaws of Renew.
const (
	renewNothing           Flaw = "renew-nothing"
	renewOnlyLengthens     Flaw = "renew-only-lengthens"
	renewLapsedRefused     Flaw = "renew-lapsed-refused"
	renewByAnyone          Flaw = "renew-by-anyone"
	renewByFormerOwner     Flaw = "renew-by-former-owner"
	renewForgetsCompletion Flaw = "renew-forgets-completion"
	renewCreates           Flaw = "renew-creates"
	renewUnseen            Flaw = "renew-unseen"
	renewExtendsValidity   Flaw = "renew-extends-validity"
	renewWithinValidity    Flaw = "renew-within-validity"
	renewStopsAtLost       Flaw = "renew-stops-at-lost"
	renewCapped            Flaw = "renew-capped"
	renewEmptyRefused      Flaw = "renew-empty-refused"
	renewInvalidAccepted   Flaw = "renew-invalid-accepted"
)

var renewFlaws = []Mutant{
	{renewNothing, "answers Renewed and writes nothing", "renew"},
	{renewOnlyLengthens, "keeps the longer of two leases", "renew-shorter"},
	{renewLapsedRefused, "does not renew a lapsed lease that nobody took over", "renew-lapsed"},
	{renewByAnyone, "renews for any owner", "renew-not-owner"},
	{renewByFormerOwner, "renews for owners that were taken over", "renew-zombie"},
	{renewForgetsCompletion, "answers RenewLost to the owner that completed", "renew-completed"},
	{renewCreates, "creates the record that it is told to renew", "renew-nothing"},
	{renewUnseen, "renews a record that is not seen any more", "renew-unseen"},
	{renewExtendsValidity, "moves the validity with the lease", "renew-validity"},
	{renewWithinValidity, "ends a renewed lease with the validity", "retention-renewed-lease"},
	{renewStopsAtLost, "answers RenewLost to all entries after one that is lost", "renew-batch"},
	{renewCapped, "renews the first hundred entries of a batch", "renew-many"},
	{renewEmptyRefused, "refuses an empty batch", "renew-empty"},
	{renewInvalidAccepted, "does not validate renewals", "invalid-renew"},
}

// Flaws of records, time and errors.
const (
	idCut                     Flaw = "id-cut"
	lapsedSeenForever         Flaw = "lapsed-seen-forever"
	unseenHasItsOwner         Flaw = "unseen-has-its-owner"
	releaseUnseenTakesNext    Flaw = "release-unseen-takes-next"
	liveLeaseEndsWithValidity Flaw = "live-lease-ends-with-validity"
	validOneInstantLonger     Flaw = "valid-one-instant-longer"
	fenceRestartsWithRecord   Flaw = "fence-restarts-with-record"
	longDurationsOverflow     Flaw = "long-durations-overflow"
	claimInvalidAccepted      Flaw = "claim-invalid-accepted"
	errorRaw                  Flaw = "error-raw"
	errorTellsPayload         Flaw = "error-tells-payload"
	hangsWithEndedContext     Flaw = "hangs-with-ended-context"
	corruptIsNew              Flaw = "corrupt-is-new"
	corruptIsReleased         Flaw = "corrupt-is-released"
)

var recordFlaws = []Mutant{
	{idCut, "ignores the last byte of IDs", "claim-independent-ids"},
	{lapsedSeenForever, "sees lapsed attempts past their validity", "retention-unseen"},
	{unseenHasItsOwner, "grants the claim of its owner on what is not seen as if it were", "retention-unseen-own"},
	{releaseUnseenTakesNext, "releases the next attempt in the place of one that is not seen", "retention-unseen-release"},
	{liveLeaseEndsWithValidity, "forgets live attempts past the retention of their claim", "retention-live-lease"},
	{validOneInstantLonger, "takes a record whose validity ends now for valid", "retention-at-the-end"},
	{fenceRestartsWithRecord, "starts fences again after a retention", "retention-fence"},
	{longDurationsOverflow, "counts durations in 32 bits of milliseconds", "durations-extreme"},
	{claimInvalidAccepted, "does not validate claims", "invalid-claim"},
	{errorRaw, "returns errors of its driver", "error-text"},
	{errorTellsPayload, "puts payloads into its errors", "error-text"},
	{hangsWithEndedContext, "does not notice that a context has ended", "context-ended"},
	{corruptIsNew, "runs what it cannot read as new", "corrupt-version"},
	{corruptIsReleased, "deletes what it cannot read", "corrupt-truncated"},
}

// Flaws of the policy that a record keeps.
const (
	presetOfRetry            Flaw = "preset-of-retry"
	presetForgotten          Flaw = "preset-forgotten"
	takeoverKeepsPolicy      Flaw = "takeover-keeps-policy"
	retentionOfRetry         Flaw = "retention-of-retry"
	replayedOneInstantLonger Flaw = "replayed-one-instant-longer"
	horizonReplays           Flaw = "horizon-replays"
	horizonForgotten         Flaw = "horizon-forgotten"
	horizonAfterCompletion   Flaw = "horizon-after-completion"
	inspectShowsExpired      Flaw = "inspect-shows-expired"
	purgeExpired             Flaw = "purge-expired"
	resolveEndsHorizon       Flaw = "resolve-ends-horizon"
	resolveShortens          Flaw = "resolve-shortens"
	policyHiddenAtEnd        Flaw = "policy-hidden-at-end"
	horizonNeverEnds         Flaw = "horizon-never-ends"
	resolveForgetsPolicy     Flaw = "resolve-forgets-policy"
)

var policyFlaws = []Mutant{
	{presetOfRetry, "takes a lapsed attempt over unless the retry is AtMostOnce", "policy-lapsed"},
	{presetForgotten, "takes over a lapsed attempt of AtMostOnce", "policy-lapsed"},
	{takeoverKeepsPolicy, "keeps the policy of the first claim", "policy-takeover"},
	{retentionOfRetry, "replays for the retention of the retry", "horizon-of-record"},
	{replayedOneInstantLonger, "replays at the instant at which the retention ends", "horizon-at-the-end"},
	{horizonReplays, "replays until the horizon ends", "horizon"},
	{horizonForgotten, "forgets a completed record when its retention ends", "horizon"},
	{horizonAfterCompletion, "counts the horizon of completed records only", "horizon-of-attempt"},
	{inspectShowsExpired, "shows an expired record as completed, with its payload", "horizon-inspected"},
	{purgeExpired, "purges records whose retention has ended", "horizon-purge"},
	{resolveEndsHorizon, "ends the horizon at a resolution", "resolve-horizon"},
	{resolveShortens, "ends a resolved record earlier than it would have ended", "resolve-remembers"},
	{policyHiddenAtEnd, "forgets the policy at the completion", "record-policy"},
	{horizonNeverEnds, "remembers a record with a horizon for ever", "horizon-ends"},
	{resolveForgetsPolicy, "forgets the policy of what an operator resolves", "record-policy-takeover"},
}

// Flaws of the abilities.
const (
	inspectUnseen          Flaw = "inspect-unseen"
	inspectHidesPayload    Flaw = "inspect-hides-payload"
	inspectHidesLapse      Flaw = "inspect-hides-lapse"
	inspectEndsWithClaim   Flaw = "inspect-ends-with-claim"
	listBeyondLimit        Flaw = "list-beyond-limit"
	listUnseen             Flaw = "list-unseen"
	resolveKeepsRetention  Flaw = "resolve-keeps-retention"
	resolveNeverForgets    Flaw = "resolve-never-forgets"
	resolveKeepsOwner      Flaw = "resolve-keeps-owner"
	resolveAnyFence        Flaw = "resolve-any-fence"
	resolveLateReason      Flaw = "resolve-late-reason"
	purgeLiveLease         Flaw = "purge-live-lease"
	purgeNothing           Flaw = "purge-nothing"
	purgeAnyLimit          Flaw = "purge-any-limit"
	purgeNotAtomic         Flaw = "purge-not-atomic"
	watchMissesCompletion  Flaw = "watch-misses-completion"
	watchMissesRelease     Flaw = "watch-misses-release"
	watchStopsAll          Flaw = "watch-stops-all"
	bindLosesContext       Flaw = "bind-loses-context"
	promisesAtomicity      Flaw = "promises-atomicity"
	findingsWithoutDetails Flaw = "findings-without-details"
)

var abilityFlaws = []Mutant{
	{inspectUnseen, "shows records that are not seen any more", "inspect-nothing"},
	{inspectHidesPayload, "shows completed records without their payload", "inspect-completed"},
	{inspectHidesLapse, "shows lapsed attempts as live until their validity ends", "inspect-in-progress"},
	{inspectEndsWithClaim, "shows the validity of live attempts without their lease", "inspect-live-beyond-retention"},
	{listBeyondLimit, "lists more than it was asked for", "list"},
	{listUnseen, "lists records that are not seen any more", "list"},
	{resolveKeepsRetention, "keeps a resolved answer for the retention of the claim", "resolve-keep"},
	{resolveNeverForgets, "keeps an empty answer when it is told to forget", "resolve-forget"},
	{resolveKeepsOwner, "lets the former owner of a resolved attempt complete", "resolve-owner"},
	{resolveAnyFence, "resolves whatever has lapsed", "resolve-changed"},
	{resolveLateReason, "resolves as lapsed what said since that its outcome is unknown", "resolve-forget-attempt"},
	{purgeLiveLease, "purges live attempts past the retention of their claim", "purge-keeps"},
	{purgeNothing, "purges nothing", "purge-deletes"},
	{purgeAnyLimit, "takes any limit of a purge", "purge-limit"},
	{purgeNotAtomic, "looks, waits, and then purges", "race-purge"},
	{watchMissesCompletion, "does not wake watches at a completion", "watch-completion"},
	{watchMissesRelease, "does not wake watches at a release", "watch-release"},
	{watchStopsAll, "ends all watches of an ID when one is stopped", "watch-stop"},
	{bindLosesContext, "binds a context of its own", "bind-context"},
	{promisesAtomicity, "says that its claims, which hold no transaction, are Atomic", "bind-atomic"},
	{findingsWithoutDetails, "reports findings without a text", "check-findings"},
}
