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
	listShowsProbes        Flaw = "list-shows-probes"
	leasedElsewhere        Flaw = "leased-elsewhere"
	listAllAges            Flaw = "list-all-ages"
	listOnePage            Flaw = "list-one-page"
	listSkips              Flaw = "list-skips"
	listStopsAtNothing     Flaw = "list-stops-at-nothing"
	listHidesUnreadable    Flaw = "list-hides-unreadable"
	cursorOfAnyone         Flaw = "cursor-of-anyone"
	inspectUnreadableFails Flaw = "inspect-unreadable-fails"
	unreadableForgetsAll   Flaw = "unreadable-forgets-all"
	unreadableAnyFence     Flaw = "unreadable-any-fence"
	unreadableStays        Flaw = "unreadable-stays"
	completedStays         Flaw = "completed-stays"
	expiredStays           Flaw = "expired-stays"
	forgetAnyFence         Flaw = "forget-any-fence"
	forgetUnseen           Flaw = "forget-unseen"
	forgetAnyAttempt       Flaw = "forget-any-attempt"
	resolveLive            Flaw = "resolve-live"
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
	{listShowsProbes, "lists the records of probes unasked", "list-label"},
	{leasedElsewhere, "keeps the records of its leased store apart", "leased"},
	{listAllAges, "lists every age", "list-age"},
	{listOnePage, "ends a listing with its first page", "list-pages"},
	{listSkips, "leaves out a record between two pages", "list-pages"},
	{listStopsAtNothing, "ends a listing at a page in which nothing matches", "list-finds"},
	{listHidesUnreadable, "leaves out of a listing what it cannot read", "unreadable-version"},
	{inspectUnreadableFails, "inspects nothing that it cannot read", "unreadable-version"},
	{cursorOfAnyone, "takes any text for a cursor", "list-cursor"},
	{unreadableForgetsAll, "forgets a readable record as unreadable", "resolve-unreadable"},
	{unreadableAnyFence, "forgets what it cannot read, whatever became of it since", "resolve-unreadable"},
	{unreadableStays, "does not forget what it cannot read", "resolve-unreadable"},
	{completedStays, "does not forget a result", "resolve-forget-completed"},
	{expiredStays, "does not forget a record whose payload has ended", "resolve-forget-completed"},
	{forgetAnyFence, "forgets a result with any fence", "resolve-forget-seen"},
	{forgetUnseen, "forgets a result for an operator who saw a lapsed attempt", "resolve-changed"},
	{forgetAnyAttempt, "forgets an attempt for an operator who saw a result", "resolve-forget-attempt"},
	{resolveLive, "resolves a live attempt", "resolve-changed"},
	{usageNamedTwice, "names a resource twice", "usage"},
}
