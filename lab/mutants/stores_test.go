package mutants

// The decisions of the store over Redis, in Go.
func init() {
	const (
		layout   = "store/redis/layout.go"
		native   = "store/redis/native.go"
		validity = "store/redis/validity.go"
		redis    = "store/redis"
	)
	const (
		claimLua    = redis + "/lua/claim.lua"
		completeLua = redis + "/lua/complete.lua"
		slimLua     = redis + "/lua/slim.lua"
		durable     = redis + "/durable.go"
		suite       = "TestRedisStoreOnASingleServer/redis/" // then the case
	)
	mutants = append(mutants, []mutant{
		{
			"anybody completes", completeLua,
			"if not seen or owner ~= string.sub(ARGV[1], 2) then", "if not seen then",
			redisLab, suite + "complete-not-owner",
		},
		{
			"anybody completes a first attempt", slimLua,
			" and string.sub(claim, 1, 17) == ARGV[1] then", " then",
			redisLab, suite + "complete-after-release-and-claim",
		},
		{
			"anybody releases", redis + "/lua/release.lua",
			"if not seen or not began or owner ~= ARGV[1] then", "if not seen or not began then",
			redisLab, suite + "release-not-owner",
		},
		{
			"anybody renews", redis + "/lua/renew.lua",
			"if not seen or owner ~= me then", "if not seen then",
			redisLab, suite + "renew-not-owner",
		},
		{
			"a takeover is that of another request", claimLua,
			"if seen and fingerprint ~= mine then", "if seen and not (began and lease <= now) and fingerprint ~= mine then",
			redisLab, "TestRedisAWaitersClaimIsBoundToItsRequest",
		},
		{
			"a lease ends early", claimLua,
			"elseif lease > now then", "elseif lease - term / 4 > now then",
			redisLab, suite + "takeover-not-early",
		},
		{
			"a completed record is taken over", claimLua,
			"if seen and not began then\n", "if began == nil and flags % 2 == TAKEOVER then seen = false end\nif seen and not began then\n",
			redisLab, "TestRedisAWaitersClaimIsBoundToItsRequest",
		},
		{
			"attempts are not counted", claimLua,
			"attempt + 1, millisecond", "attempt, millisecond",
			redisLab, suite + "takeover-max-attempts",
		},
		{
			"the fence of a takeover does not rise", claimLua,
			"fence = math.max(fence + 1, began * 1000 + 999)", "fence = fence + 0",
			redisLab, suite + "takeover",
		},
		{
			"a claim is nobody's when it is repeated", claimLua,
			"if owner ~= me then", "if owner ~= nil then",
			redisLab, suite + "claim-repeat",
		},
		{
			"a lapsed claim is nobody's when it is repeated", claimLua,
			"elseif owner == me then", "elseif owner == nil then",
			redisLab, suite + "takeover-own",
		},
		{
			"a completion that is repeated writes nothing", completeLua,
			"  redis.call('SET', KEYS[1], raw, 'KEEPTTL')\n", "",
			redisLab, "TestRedisARepetitionWritesAgain",
		},
		{
			"any duplicate marks an attempt as watched", claimLua,
			"if flags % VALIDITY >= WAITING and kind == CLAIMED then", "if kind == CLAIMED then",
			redisLab, "TestRedisOnlyAWaiterMarksAnAttempt",
		},
		{
			"a claim within the millisecond of a release has its fence", claimLua,
			"if fence <= last then", "if fence < last then",
			redisLab, "TestRedisFencesOfOneMillisecond",
		},
		{
			"a release forgets the fence of its millisecond", redis + "/lua/forget.lua",
			"if fence >= math.floor", "if fence > math.floor",
			redisLab, "TestRedisFencesOfOneMillisecond",
		},
		{
			"takeovers have no limit", claimLua,
			"or (most > 0 and attempt >= most) then", "then",
			redisLab, suite + "takeover-max-attempts",
		},
		{
			"a lease is written that has ended", redis + "/lua/write.lua",
			"if began + span <= math.floor", "if began + span < math.floor",
			redisLab, "TestRedisAShortLeaseIsWritten",
		},
		{
			"a lease that runs ends with the retention", redis + "/lua/record.lua",
			"seen = valid > now or lease > now", "seen = valid > now",
			redisLab, suite + "retention-live-lease",
		},
		{
			"a completion that the server refuses succeeds", completeLua,
			"redis.call('SET', KEYS[1], struct.pack(DONE", "redis.pcall('SET', KEYS[1], struct.pack(DONE",
			redisLab, "TestRedisARefusedWriteIsNoSuccess",
		},
		{
			"an operator resolves what runs", redis + "/lua/resolve.lua",
			"or lease > now or fence", "or fence",
			redisLab, "TestRedisTheInstantsOfAnAttempt",
		},
		{
			"what was written is not confirmed", durable,
			"open = append(open, c)", "c.confirmed(nil)",
			redis, "TestEveryWriteOfAnAttemptIsConfirmed",
		},
		{
			"the wait is on another connection", durable,
			"_ = conn.Process(ctx, wait)", "_ = s.client.Process(ctx, wait)",
			redis, "TestAWriteWaitsOnItsOwnConnection",
		},
		{
			"a replay waits for replicas", durable,
			"if c.wait && c.hasWritten() {", "if c.wait {",
			redis, "TestAnAnswerThatWroteNothingIsNotWaitedFor",
		},
		{
			"one replica is enough", durable,
			"case replicas < int64(d.replicas):", "case replicas < min(1, int64(d.replicas)):",
			redis, "TestTooFewConfirmationsAreNotReplicated",
		},
		{
			"a refused wait confirms", durable,
			"return fail(reprise.ErrNotReplicated, err)", "return nil",
			redis, "TestTooFewConfirmationsAreNotReplicated",
		},
		{
			"a wait outlasts its caller", durable,
			"timeout = min(timeout, time.Until(deadline)*3/4)", "_ = deadline",
			redis, "TestTheWaitEndsBeforeTheContext",
		},
		{
			"two claims of a millisecond may have fences that fall", layout,
			"return uint64(began)*1000 + 999", "return uint64(began) * 1000",
			redis, "TestWhenAGrantedNativeClaimCounts",
		},
		{
			"a key outlives its record", layout,
			"return max(1, millis(retention)-1)", "return max(1, millis(retention)+1)",
			redis, "TestTheSpanOfAKeyEndsWithItsRecord",
		},
		{
			"a lease beyond the retention is cut", layout,
			"return completedSpan(max(lease, retention))", "return completedSpan(min(lease, retention))",
			redis, "TestTheSpanOfAKeyEndsWithItsRecord",
		},
		{
			"a payload that was cut is replayed", layout,
			"return r, !f.bad && len(r.payload) == length", "return r, !f.bad && len(r.payload) <= length",
			redis, "TestRecordsThatAClaimFinds",
		},
		{
			"any claim takes over", layout,
			"\tif r.Takeover {\n", "\tif true {\n",
			redis, "TestArgumentsHaveTheirLayout",
		},
		{
			"a later attempt is completed without a look at its record", layout,
			"if r.Attempt == 1 {", "if r.Attempt >= 1 {",
			redis, "TestArgumentsHaveTheirLayout",
		},
		{
			"a native claim replays to another request", native,
			"case !r.forgotten && r.fingerprint != n.request.Fingerprint:", "case r.forgotten && r.fingerprint != n.request.Fingerprint:",
			redis, "TestWhatANativeClaimFinds",
		},
		{
			"a late answer grants", native,
			"began > 0 && !n.isLate(time.Now())", "began > 0",
			redis, "TestWhenAGrantedNativeClaimCounts",
		},
		{
			"a clock that was set back hides what a lease lost", native,
			"return max(monotonic, wall) > lease/10*9", "return min(monotonic, wall) > lease/10*9",
			redis, "TestALateAnswerIsLateByEitherClock",
		},
		{
			"the validity is that of another record", validity,
			"|| !bytes.Equal(head, found[:identitySize]) {", "|| bytes.Equal(head, nil) {",
			redis, "TestTheValidityIsThatOfTheRecordThatWasFound",
		},
	}...)
}

// What protects the payload of a record, and who reads it without the store.
func init() {
	const (
		room      = "core/protocol"
		envelope  = room + "/envelope.go"
		blob      = room + "/sealedblob.go"
		offload   = room + "/offload.go"
	)
	mutants = append(mutants, []mutant{
		{
			"a sealed response of another operation is opened", envelope,
			"append(append(append(b.data[:0], who.ID[:]...), who.Fingerprint[:]...), start...)", "append(b.data[:0], start...)",
			room, "TestSealedAnswerOfAnotherIsCorrupt",
		},
		{
			"the clear head of a sealed response may be changed", envelope,
			"append(append(append(b.data[:0], who.ID[:]...), who.Fingerprint[:]...), start...)", "append(append(append(b.data[:0], who.ID[:]...), who.Fingerprint[:]...), start[:envelopeHeadSize]...)",
			room, "TestSealedAnswerOfAnotherIsCorrupt",
		},
		{
			"the key of a sealed response needs no secret", envelope,
			"b.material, secret.bytes(), string(who.ID[:]), 32)", "b.material, nil, string(who.ID[:]), 32)",
			room, "TestSealedGoldenVectors",
		},
		{
			"what is not sealed passes a strict guard", envelope,
			"\t\tif c.Strict {\n", "\t\tif c.Strict && len(payload) == 0 {\n",
			room, "TestSealedSecretsRotate",
		},
		{
			"an old sealed response is put back", envelope,
			"case c.MaxAge > 0 && time.Since(", "case c.MaxAge < 0 && time.Since(",
			room, "TestSealedAnswerOfAnotherIsCorrupt",
		},
		{
			"the last chunk of a sealed body is left out", blob,
			"\tif last {\n\t\treturn append(b, 1)\n\t}\n", "\t_ = last\n",
			room, "TestSealedBlobThatWasChangedDoesNotOpen",
		},
		{
			"the chunks of a sealed body change places", blob,
			"\tc.n++\n", "",
			room, "TestSealedBlobThatWasChangedDoesNotOpen",
		},
		{
			"a damaged blob is replayed", offload,
			"case got.SHA256 != ref.SHA256:", "case len(got.SHA256) == 0:",
			room, "TestR35LostOrDamagedBlobIsNeverReplayed",
		},
		{
			"a blob that is cut is replayed", offload,
			"case got.Size != ref.Size:\n\t\treturn nil, damagedBlob(fmt.Sprintf(\"has %d bytes, want %d\", got.Size, ref.Size))\n\tcase got.SHA256 != ref.SHA256:",
			"case got.Size > ref.Size:\n\t\treturn nil, damagedBlob(\"\")\n\tcase got.Size == ref.Size && got.SHA256 != ref.SHA256:",
			room, "TestR35LostOrDamagedBlobIsNeverReplayed",
		},
		{
			"Do keeps what a function released", "core/do.go",
			"case err != nil && !d.keeps(err):", "case err != nil && d.keeps(err):",
			"core", "TestDoKeepsOrReleases",
		},
		{
			"Do replays an error as a value", "core/do.go",
			"return d.kept.value, true, d.kept.replayError()", "return d.kept.value, true, nil",
			"core", "TestDoKeepsOrReleases",
		},
	}...)
}
