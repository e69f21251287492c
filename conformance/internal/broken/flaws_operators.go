package broken

// Flaws in the view of operators.
const (
	takeoverKeepsTime      Flaw = "takeover-keeps-time"
	renewMovesTime         Flaw = "renew-moves-time"
	completedAtRepeated    Flaw = "completed-at-repeated"
	sizeInspectedOnly      Flaw = "size-inspected-only"
	resolvedHidden         Flaw = "resolved-hidden"
	knownNotFenced         Flaw = "known-not-fenced"
	knownWritten           Flaw = "known-written"
	listAllStates          Flaw = "list-all-states"
	listLabelPrefix        Flaw = "list-label-prefix"
	listAllAges            Flaw = "list-all-ages"
	listOnePage            Flaw = "list-one-page"
	listSkips              Flaw = "list-skips"
	listStopsAtNothing     Flaw = "list-stops-at-nothing"
	listHidesUnreadable    Flaw = "list-hides-unreadable"
	cursorOfAnyone         Flaw = "cursor-of-anyone"
	inspectUnreadableFails Flaw = "inspect-unreadable-fails"
	fenceZeroForgetsAll    Flaw = "fence-zero-forgets-all"
	unreadableStays        Flaw = "unreadable-stays"
	usageNamedTwice        Flaw = "usage-named-twice"
)

var operatorFlaws = []Mutant{
	{claimInvalidAccepted, "does not validate labels", "record-label-refused"},
	{takeoverKeepsTime, "keeps the instant of the first claim", "record-times-takeover"},
	{renewMovesTime, "takes a renewal for the instant of the claim", "record-times"},
	{completedAtRepeated, "takes a repeated completion for the instant of the completion", "record-times"},
	{sizeInspectedOnly, "lists records without the size of their payload", "record-size"},
	{resolvedHidden, "does not tell a resolved record from another", "record-resolved"},
	{knownNotFenced, "takes the word of a completion that has the fields of its claim", "complete-known"},
	{knownWritten, "writes the record of a completion that has the fields of its claim, whatever is there", "complete-known-stale"},
	{listAllStates, "lists every state", "list-states"},
	{listLabelPrefix, "lists labels that start with the one asked for", "list-label"},
	{listAllAges, "lists every age", "list-age"},
	{listOnePage, "ends a listing with its first page", "list-pages"},
	{listSkips, "leaves out a record between two pages", "list-pages"},
	{listStopsAtNothing, "ends a listing at a page in which nothing matches", "list-finds"},
	{listHidesUnreadable, "leaves out of a listing what it cannot read", "unreadable-version"},
	{inspectUnreadableFails, "inspects nothing that it cannot read", "unreadable-version"},
	{cursorOfAnyone, "takes any text for a cursor", "list-cursor"},
	{fenceZeroForgetsAll, "forgets any record with fence 0", "resolve-unreadable"},
	{unreadableStays, "does not forget what it cannot read", "resolve-unreadable"},
	{usageNamedTwice, "names a resource twice", "usage"},
}
