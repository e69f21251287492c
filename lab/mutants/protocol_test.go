package mutants

// What the protocol reads from clients and records, and what leaves in response.
func init() {
	const (
		core     = "core"
		room     = core + "/protocol"
		body     = room + "/body.go"
		exchange = room + "/exchange.go"
		recorder = room + "/recorder.go"
		spool    = room + "/spool.go"
	)
	mutants = append(mutants, []mutant{
		{
			"a body that was read before is not compared", body,
			"case req.Length > 0 && (req.Header == nil", "case req.Length < -1 && (req.Header == nil",
			room, "TestBodyThatWasReadBefore",
		},
		{
			"a body over the limit of an outer layer is a broken one", body,
			"case err != nil && req.TooLarge != nil && req.TooLarge(err):", "case false:",
			room, "TestR26LimitOfAnOuterLayer",
		},
		{
			"a connection goes on where a body broke off", body,
			"return n <= mostDrained && errors.Is(err, io.EOF)", "return n <= mostDrained && (err == nil || err != nil)",
			room, "TestR47UnwantedBodiesAreDrained",
		},
		{
			"JSON of any depth is compared", room + "/canonical.go",
			"return depth < maxJSONDepth && c.object(depth)", "return c.object(depth)",
			room, "TestCanonicalJSONFallsBackToBytes",
		},
		{
			"an error of a call that breaks off is read", room + "/callstatus.go",
			"if n <= 0 || size > uint64(len(b)-n) {", "if n < 0 || size > uint64(len(b)-n) {",
			room, "TestStatusOfACallIsReadOrRefused",
		},
		{
			"a record refers to a blob of any size", room + "/blob.go",
			"plain <= maxBlob &&", "plain > 0 &&",
			room, "TestReferencesToBlobsAreBounded",
		},
		{
			"a sealed blob has another layout", room + "/sealedblob.go",
			`blobLabel    = "reprise/blob/1\x00"`, `blobLabel    = "reprise/blob/2\x00"`,
			room, "TestSealedBlobHasItsLayout",
		},
		{
			"a guard has temporary files of any size", spool,
			"if s.g.spooled.Add(int64(len(p))) > s.g.cfg.MaxSpool {", "if s.g.spooled.Add(int64(len(p))) < 0 {",
			room, "TestSpoolsHaveTheirRoom",
		},
		{
			"a guard removes a file that is not its own", spool,
			"if os.Remove(f.Name()) != nil {", "if _ = os.Remove(f.Name()); true {",
			room, "TestSpoolRemovesItsOwnFile",
		},
		{
			"a body from a reader that broke off is kept", room + "/capture.go",
			"Cut: !c.stopped && !c.Whole(err)}", "Cut: false}",
			room, "TestR33BodiesFromReadersAreWholeOrCut",
		},
		{
			"a success whose effects were rolled back leaves", exchange,
			"if e == cut && x.attempt.Atomic() && !c.Sent && c.Status < 400 {", "if e == cut && x.attempt.Atomic() && !c.Sent && c.Status < 0 {",
			room, "TestRolledBackSuccessDoesNotLeave",
		},
		{
			"the effects of a failure are committed", exchange,
			"DiscardEffects: meaning >= 400", "DiscardEffects: meaning < 0",
			room, "TestEffectsOfAFailureAreRolledBack",
		},
		{
			"a response that may not be recorded says until when it is replayed", exchange,
			"Added: withoutExpiry(x.announced)}", "Added: x.announced}",
			room, "TestNoExpiryWithoutARecord",
		},
		{
			"an interim response is the recorded one", recorder,
			"case status >= 100 && status < 200 && status != 101:", "case false:",
			room, "TestR17InterimResponsesLeaveAtOnce",
		},
		{
			"a replay names a media type that the first response did not have", recorder,
			"if !r.live && !r.taken {\n\t\tr.nameType(s.response)", "if !r.taken {\n\t\tr.nameType(s.response)",
			room, "TestR34FlushSendsWhatThereIs",
		},
		{
			"an operator sees the records of every label", core + "/inspect.go",
			"if !q.States.Has(r.State) || (q.Label != \"\" && q.Label != r.Label) {", "if !q.States.Has(r.State) {",
			core, "TestQuerySelects",
		},
	}...)
}
