package broken

import "github.com/reprise-go/reprise/core/store"

// Flaws of the description and the fingerprint of a record.
const (
	descriptionForgotten   Flaw = "description-forgotten"
	descriptionOfFirst     Flaw = "description-of-first"
	descriptionStays       Flaw = "description-stays"
	descriptionNotResolved Flaw = "description-not-resolved"
	descriptionNotUnknown  Flaw = "description-not-unknown"
	descriptionNotListed   Flaw = "description-not-listed"
	descriptionOutlives    Flaw = "description-outlives"
	descriptionExpires     Flaw = "description-expires"
	descriptionCut         Flaw = "description-cut"
	fingerprintHidden      Flaw = "fingerprint-hidden"
)

var descriptionFlaws = []Mutant{
	{descriptionForgotten, "forgets the description at the completion", "description"},
	{descriptionNotListed, "lists records without their description", "description"},
	{descriptionOfFirst, "keeps the description of the first claim", "description-takeover"},
	{descriptionStays, "keeps the description of the claim before, where a takeover has none", "description-takeover"},
	{descriptionNotResolved, "forgets the description of what an operator resolves", "description-takeover"},
	{descriptionNotUnknown, "forgets the description when the outcome is unknown", "description-unknown"},
	{descriptionOutlives, "keeps the description of a record that has ended", "description-ends"},
	{descriptionExpires, "forgets the description when the retention ends", "description-ends"},
	{descriptionCut, "cuts what is too long for a description", "description-refused"},
	{fingerprintHidden, "does not show the fingerprint", "record-fingerprint"},
}

// describe sets the description of a record at a claim.
func (s *Store) describe(rec *record, r *store.ClaimRequest) {
	switch {
	case rec.attempt > 0 && s.has(descriptionOfFirst):
	case r.Description == "" && s.has(descriptionStays, descriptionOutlives):
	default:
		rec.description = r.Description
	}
}

// cut makes a description valid that is too long, for a store with the flaw.
func (s *Store) cut(description *string) {
	if s.has(descriptionCut) && len(*description) > store.MaxDescription {
		*description = (*description)[:store.MaxDescription]
	}
}
