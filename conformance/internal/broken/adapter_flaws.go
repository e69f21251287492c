package broken

// Adapters returns every adapter with a flaw. [Middleware] makes them.
func Adapters() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{requestFlaws, framingFlaws, runFlaws, replayFlaws} {
		all = append(all, part...)
	}
	return all
}

// Flaws in how an adapter reads the request.
const (
	firstLineOnly     Flaw = "first-line-only"
	malformedAsAbsent Flaw = "malformed-as-absent"
	emptyFieldIsNone  Flaw = "empty-field-is-none"
	keysEveryMethod   Flaw = "keys-every-method"
	readsFirst        Flaw = "reads-first"
	mergesTrailers    Flaw = "merges-trailers"
	scopeInTrailers   Flaw = "scope-in-trailers"
	decodesPath       Flaw = "decodes-path"
	forgetsQuery      Flaw = "forgets-query"
	forgetsScope      Flaw = "forgets-scope"
	defaultsScope     Flaw = "defaults-scope"
	cleansScope       Flaw = "cleans-scope"
	forgetsHost       Flaw = "forgets-host"
	forgetsBoundary   Flaw = "forgets-boundary"
	forgetsLimit      Flaw = "forgets-limit"
	forgetsLength     Flaw = "forgets-length"
	hidesFields       Flaw = "hides-fields"
	marksUnkeyed      Flaw = "marks-unkeyed"
	recoversUnkeyed   Flaw = "recovers-unkeyed"
)

var requestFlaws = []Mutant{
	{firstLineOnly, "looks at the first line with a key", "R6a"},
	{malformedAsAbsent, "runs a request with a malformed key as one without", "R5a"},
	{emptyFieldIsNone, "takes an empty field for an absent one", "R5a"},
	{keysEveryMethod, "protects GET", "R9a"},
	{readsFirst, "reads the body before it knows whether there is a key", "R1e"},
	{mergesTrailers, "takes trailers for fields of the header", "R7a"},
	{scopeInTrailers, "lets the scope function see trailers", "R7c"},
	{decodesPath, "decodes the path", "R24b"},
	{forgetsQuery, "forgets the query", "R24a"},
	{forgetsScope, "has one key space for all", "R43a"},
	{defaultsScope, "shares a key space among those that it cannot name", "R44"},
	{cleansScope, "drops the control bytes of a principal's name", "R43d"},
	{forgetsHost, "does not tell which host was asked", "R24g"},
	{forgetsBoundary, "does not tell the parameters of the media type", "R24h"},
	{forgetsLimit, "takes the limit of an outer layer for a broken body", "R26e"},
	{forgetsLength, "does not tell which length was declared", "R50a"},
	{hidesFields, "shows the policy no field but the protocol's own", "R24g"},
	{marksUnkeyed, "marks answers to requests without a key", "R10b"},
	{recoversUnkeyed, "swallows the panics of handlers without a key", "T7"},
}

// Flaws in where a server ends a request. [Listener] has them.
const (
	takesLastLength   Flaw = "takes-last-length"
	takesAnyCoding    Flaw = "takes-any-coding"
	prefersChunks     Flaw = "prefers-chunks"
	unfoldsLines      Flaw = "unfolds-lines"
	dropsControlBytes Flaw = "drops-control-bytes"
)

var framingFlaws = []Mutant{
	{takesLastLength, "takes the last of two lengths", "R27f"},
	{takesAnyCoding, "takes every transfer coding for chunked", "R27g"},
	{prefersChunks, "ignores the length of a request in chunks", "R27h"},
	{unfoldsLines, "joins folded lines", "R27i"},
	{dropsControlBytes, "drops control bytes from the header section", "R27j"},
}

// Flaws of how an adapter runs the handler.
const (
	clientsContext       Flaw = "clients-context"
	drainsBody           Flaw = "drains-body"
	finishesPanics       Flaw = "finishes-panics"
	sendsFirst           Flaw = "sends-first"
	informationalIsFinal Flaw = "informational-is-final"
	stringsPass          Flaw = "strings-pass"
	copiesPass           Flaw = "copies-pass"
	swallowsFlush        Flaw = "swallows-flush"
	hijacksUntold        Flaw = "hijacks-untold"
	keepsEverything      Flaw = "keeps-everything"
	rewritesQuery        Flaw = "rewrites-query"
	passesDrained        Flaw = "passes-drained"
	statusIsNoAnswer     Flaw = "status-is-no-answer"
	reportIsNoAnswer     Flaw = "report-is-no-answer"
	swallowsPolicy       Flaw = "swallows-policy"
	hidesLength          Flaw = "hides-length"
	forgetsExpiry        Flaw = "forgets-expiry"
	promisesExpiry       Flaw = "promises-expiry"
	oneLink              Flaw = "one-link"
	runsUnreadable       Flaw = "runs-unreadable"
	runsExpired          Flaw = "runs-expired"
	hidesRun             Flaw = "hides-run"
	releasesLeft         Flaw = "releases-left"
	runsNested           Flaw = "runs-nested"
	releasesTimeouts     Flaw = "releases-timeouts"
	decidesBlindly       Flaw = "decides-blindly"
	releasesUnknown      Flaw = "releases-unknown"
	keepsUnknown         Flaw = "keeps-unknown"
	forgetsUnknown       Flaw = "forgets-unknown"
)

var runFlaws = []Mutant{
	{clientsContext, "cancels the handler when the client leaves", "R23a"},
	{drainsBody, "gives the handler the body that it has read itself", "R27c"},
	{finishesPanics, "records what a handler that panicked has written", "R33a"},
	{sendsFirst, "sends the answer before it is recorded", "R41a"},
	{informationalIsFinal, "takes 103 for the final status", "R17b"},
	{stringsPass, "lets strings go past what it captures", "R12c"},
	{copiesPass, "lets io.Copy go past what it captures", "R12c"},
	{swallowsFlush, "holds a stream back", "R34a"},
	{hijacksUntold, "records an answer for a connection that the handler has taken", "R34f"},
	{keepsEverything, "keeps every answer, whatever its status", "R31b"},
	{statusIsNoAnswer, "takes a 203 that nothing follows for no answer", "R33e"},
	{reportIsNoAnswer, "takes an answer beside a reported error for none", "R33f"},
	{hidesLength, "does not let the recorder see the declared length", "R33g"},
	{swallowsPolicy, "swallows the panic of a function of the policy", "R33c"},
	{forgetsExpiry, "does not say until when a response is replayed", "R37c"},
	{promisesExpiry, "says of every response until when it is replayed", "R37c"},
	{runsExpired, "runs a request again whose result has expired", "R37e"},
	{oneLink, "sends the last link only", "R10d"},
	{runsUnreadable, "runs the handler where the record cannot be read", "R24c"},
	{releasesTimeouts, "releases every 408, whatever the preset", "R31g"},
	{decidesBlindly, "does not let the policy see the body that it decides about", "R31h"},
	{releasesUnknown, "releases every 504, whatever its handler says", "R52a"},
	{keepsUnknown, "keeps every 202, whatever its handler says", "R52a"},
	{forgetsUnknown, "lets a panic undo what its handler said", "R52c"},
	{releasesLeft, "takes an answer for cut short because its client left", "R35n"},
	{hidesRun, "gives the layers inside a context that does not show its run", "R51a"},
	{runsNested, "runs the handler where another guard decides about the request", "R51b"},
	{passesDrained, "passes a request without the body that was read for its key", "R48b"},
	{rewritesQuery, "gives the handler a query that it has put in order", "R27d"},
}

// Flaws of how an adapter answers instead of the handler.
const (
	replaysUnmarked  Flaw = "replays-unmarked"
	replaysOK        Flaw = "replays-ok"
	replaysCookies   Flaw = "replays-cookies"
	repeatsRequestID Flaw = "repeats-request-id"
	repeatsDate      Flaw = "repeats-date"
	joinsLines       Flaw = "joins-lines"
	losesCoding      Flaw = "loses-coding"
	repeatsHop       Flaw = "repeats-hop"
	cachesProblems   Flaw = "caches-problems"
	tellsKey         Flaw = "tells-key"
	forgetsRemoval   Flaw = "forgets-removal"
	dropsCleaned     Flaw = "drops-cleaned"
	losesType        Flaw = "loses-type"
	losesLength      Flaw = "loses-length"
	losesTrailers    Flaw = "loses-trailers"
	forgetsStreams   Flaw = "forgets-streams"
	leavesStreams    Flaw = "leaves-streams"
)

var replayFlaws = []Mutant{
	{replaysUnmarked, "replays without a mark", "R15"},
	{replaysOK, "replays every status as 200", "T1"},
	{replaysCookies, "replays Set-Cookie", "R14b"},
	{repeatsRequestID, "adds the X-Request-Id of the first answer to the replay's own", "R13b"},
	{repeatsDate, "replays the date of the first answer", "R15"},
	{joinsLines, "joins the lines of a field", "R13a"},
	{losesCoding, "replays a compressed body without its coding", "R19"},
	{repeatsHop, "replays what Connection names", "R14c"},
	{cachesProblems, "lets its problems be cached", "R22b"},
	{forgetsRemoval, "leaves what the handler removed on a replay", "R13g"},
	{dropsCleaned, "replays no field that had a line end in its value", "R13h"},
	{losesType, "replays a body without its media type", "R16b"},
	{losesLength, "replays without a length", "R14f"},
	{losesTrailers, "replays without the trailers", "R17d"},
	{forgetsStreams, "looks for the body of a replay in memory only", "R35f"},
	{leavesStreams, "does not close the stream of a replay", "R35l"},
	{tellsKey, "puts the key into its problems", "R22b"},
}
