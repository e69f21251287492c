package broken

import (
	"context"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Flaws of Unknown.
const (
	unknownRuns            Flaw = "unknown-runs"
	unknownOwnerClaims     Flaw = "unknown-owner-claims"
	unknownTakenOver       Flaw = "unknown-taken-over"
	unknownBeforePrint     Flaw = "unknown-before-fingerprint"
	unknownRenewed         Flaw = "unknown-renewed"
	unknownCompletes       Flaw = "unknown-completes"
	unknownReleases        Flaw = "unknown-releases"
	unknownUnfenced        Flaw = "unknown-unfenced"
	unknownOfCompleted     Flaw = "unknown-of-completed"
	unknownCreates         Flaw = "unknown-creates"
	unknownNotRepeatable   Flaw = "unknown-not-repeatable"
	unknownReasonRepeated  Flaw = "unknown-reason-repeated"
	unknownKeepsValidity   Flaw = "unknown-keeps-validity"
	unknownLapsedRefused   Flaw = "unknown-lapsed-refused"
	unknownByFormerOwner   Flaw = "unknown-by-former-owner"
	unknownHidden          Flaw = "unknown-hidden"
	unknownNotResolved     Flaw = "unknown-not-resolved"
	unknownNotSignalled    Flaw = "unknown-not-signalled"
	unknownInvalidAccepted Flaw = "unknown-invalid-accepted"
)

var unknownFlaws = []Mutant{
	{unknownRuns, "leaves the lease of an attempt whose outcome is unknown", "unknown-claim"},
	{unknownTakenOver, "takes over an attempt whose outcome is unknown", "unknown-claim"},
	{unknownOwnerClaims, "grants the claim of the owner that said that the outcome is unknown", "unknown-claim-own"},
	{unknownBeforePrint, "answers Lapsed before it looks at the fingerprint", "unknown-mismatch"},
	{unknownRenewed, "renews an attempt whose outcome is unknown", "unknown-ends"},
	{unknownCompletes, "completes an attempt whose outcome is unknown", "unknown-ends"},
	{unknownReleases, "releases an attempt whose outcome is unknown", "unknown-ends"},
	{unknownUnfenced, "takes the word of any owner that the outcome is unknown", "unknown-not-owner"},
	{unknownByFormerOwner, "takes the word of owners that were taken over", "unknown-zombie"},
	{unknownOfCompleted, "makes the outcome of a completed record unknown", "unknown-completed"},
	{unknownCreates, "creates the record whose outcome is unknown", "unknown-nothing"},
	{unknownNotRepeatable, "answers ErrLeaseLost to a repeated Unknown", "unknown-repeat"},
	{unknownReasonRepeated, "keeps the last reason", "unknown-repeat"},
	{unknownKeepsValidity, "leaves the validity of the claim", "unknown-validity"},
	{unknownLapsedRefused, "refuses the word of an owner whose lease has run out", "unknown-late"},
	{unknownHidden, "shows an unknown outcome as a lapse", "unknown-inspected"},
	{unknownNotResolved, "does not resolve an unknown outcome", "unknown-resolve"},
	{unknownNotSignalled, "does not signal that an outcome is unknown", "unknown-watch"},
	{unknownInvalidAccepted, "does not validate reasons", "unknown-invalid"},
}

// Unknown implements [reprise.Store].
func (s *Store) Unknown(ctx context.Context, r store.UnknownRequest) error {
	if err := r.Validate(); err != nil && !s.has(unknownInvalidAccepted) {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(r.ID, now)
	if err != nil {
		return err
	}
	if rec == nil && s.has(unknownCreates) {
		s.fence++
		rec = &record{owner: r.Owner, attempt: 1, fence: s.fence}
		s.records[s.place(r.ID)] = rec
	}
	switch {
	case rec == nil,
		rec.completed && !s.has(unknownOfCompleted),
		!s.endsFor(rec, r.Owner),
		s.has(unknownLapsedRefused) && !s.live(rec, now) && rec.reason == "":
		return s.lost(nil)
	case rec.reason != "" && s.has(unknownNotRepeatable):
		return s.lost(nil)
	case rec.reason != "" && !s.has(unknownReasonRepeated):
		return nil
	}
	rec.completed, rec.reason = false, r.Reason
	if s.has(descriptionNotUnknown) {
		rec.description = ""
	}
	if !s.has(unknownRuns) {
		rec.lease = now
	}
	rec.policy.AtMostOnce = !s.has(unknownTakenOver)
	if !s.has(unknownKeepsValidity) {
		rec.valid = s.after(now, rec.policy.Remembered())
	}
	if !s.has(unknownNotSignalled) {
		s.changed(r.ID)
	}
	return nil
}

// endsFor reports whether the word of owner about the outcome counts.
func (s *Store) endsFor(rec *record, owner store.Owner) bool {
	return rec.owner == owner || s.has(unknownUnfenced) || s.has(unknownByFormerOwner) && slices.Contains(rec.former, owner)
}

// isUnknown reports whether the outcome of a record is, for a store that lets neither its
// owner nor another go on with it, unless it has the flaw.
func (s *Store) isUnknown(rec *record, flaw Flaw) bool { return rec.reason != "" && !s.has(flaw) }
