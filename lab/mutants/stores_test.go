package mutants

// The decisions of the stores, in Go, Lua and SQL.
func init() {
	const (
		lua      = "store/redis/lua/"
		layout   = "store/redis/layout.go"
		native   = "store/redis/native.go"
		validity = "store/redis/validity.go"
		durable  = "store/redis/durable.go"
		redis    = "store/redis"
		redisLab = "lab/redis"
		onRedis  = "TestRedisStoreOnASingleServer/"

		sql         = "store/postgres/sql/"
		seen        = "store/postgres/seen.go"
		claim       = "store/postgres/claim.go"
		postgresLab = "lab/postgres"
		onPostgres  = "TestPostgresConformance/"
	)
	mutants = append(mutants, []mutant{
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
			"expires > 0 && began > 0 && !n.isLate(time.Now())", "expires > 0 && began > 0",
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
		{
			"what was written is not confirmed", durable,
			"if c.wait && c.hasWritten() {", "if c.wait && !c.hasWritten() {",
			redis, "TestEveryWriteOfAnAttemptIsConfirmed",
		},
		{
			"a live lease is taken over in Redis", lua + "claim.lua",
			"elseif lease > now then", "elseif lease > now and flags % 2 ~= TAKEOVER then",
			redisLab, onRedis + "takeover-not-early",
		},
		{
			"attempts are not counted in Redis", lua + "claim.lua",
			"(most > 0 and attempt >= most)", "(most > 0 and attempt > most)",
			redisLab, onRedis + "takeover-max-attempts",
		},
		{
			"another request is let in, in Redis", lua + "claim.lua",
			"if seen and fingerprint ~= mine then return 'M' end", "",
			redisLab, onRedis + "claim-mismatch-in-flight",
		},
		{
			"a fence stays at a takeover in Redis", lua + "claim.lua",
			"fence = math.max(fence + 1, began * 1000 + 999)", "fence = fence",
			redisLab, onRedis + "takeover",
		},
		{
			"a former owner completes in Redis", lua + "complete.lua",
			"if not seen or owner ~= string.sub(ARGV[1], 2) then return 'X' end", "if not seen then return 'X' end",
			redisLab, onRedis + "complete-zombie",
		},
		{
			"a repetition replaces the answer in Redis", lua + "complete.lua",
			"redis.call('SET', KEYS[1], raw, 'KEEPTTL')", "redis.call('SET', KEYS[1], string.sub(raw, 1, #raw - #ARGV[4]) .. ARGV[4], 'KEEPTTL')",
			redisLab, onRedis + "complete-once",
		},
		{
			"a former owner renews in Redis", lua + "renew.lua",
			"if not seen or owner ~= me then return 'X' end", "if not seen then return 'X' end",
			redisLab, onRedis + "renew-zombie",
		},
		{
			"a completed record is released in Redis", lua + "release.lua",
			"if not seen or not began or owner ~= ARGV[1] then return 'N' end", "if not seen or owner ~= ARGV[1] then return 'N' end",
			redisLab, onRedis + "release-completed",
		},

		{
			"a live lease is taken over in PostgreSQL", seen,
			"\tcase live:\n", "\tcase live && !c.Takeover:\n",
			postgresLab, onPostgres + "takeover-not-early",
		},
		{
			"a statement replays to another request", seen,
			"case !bytes.Equal(r.fingerprint, c.Fingerprint[:]):", "case bytes.Equal(r.fingerprint, nil):",
			postgresLab, onPostgres + "claim-mismatch-completed",
		},
		{
			"a record beyond its retention is replayed", seen,
			"case !live && r.validUntil <= r.at:", "case !live && r.validUntil < 0:",
			postgresLab, onPostgres + "retention-ends",
		},
		{
			"the last attempt is taken over by the transactional store", seen,
			"r.attempt >= c.MaxAttempts", "r.attempt > c.MaxAttempts",
			postgresLab, "TestPostgresLeasedRecordInTheSameTable",
		},
		{
			"a row of a later release is read", seen,
			"return r.version == rowVersion && (", "return r.version >= rowVersion && (",
			postgresLab, onPostgres + "corrupt-claim",
		},
		{
			"a lease that began before a wait is granted", claim,
			"return c.remaining() < lease-slowClaim", "return c.remaining() < 0",
			postgresLab, "TestPostgresLeaseIsWhole",
		},
		{
			"a former owner completes in PostgreSQL", sql + "complete_own.sql",
			"WHERE id = $1::bytea AND owner = $2::bytea AND", "WHERE id = $1::bytea AND $2::bytea IS NOT NULL AND",
			postgresLab, onPostgres + "complete-zombie",
		},
		{
			"a repetition replaces the answer in PostgreSQL", sql + "complete_own.sql",
			"{readable} AND state = 1\n", "{readable}\n",
			postgresLab, onPostgres + "complete-once",
		},
		{
			"a completion comes after the retention", sql + "complete_own.sql",
			"AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())", "",
			postgresLab, onPostgres + "complete-after-retention",
		},
		{
			"the purge of a completed record comes early", sql + "complete_own.sql",
			"THEN clock_timestamp() + $4::interval ELSE r.expires_at END", "THEN clock_timestamp() ELSE r.expires_at END",
			postgresLab, onPostgres + "record-times",
		},
		{
			"a former owner renews in PostgreSQL", sql + "renew.sql",
			"ON r.id = a.asked_id AND r.owner = a.asked_owner\n\tWHERE", "ON r.id = a.asked_id\n\tWHERE",
			postgresLab, onPostgres + "renew-zombie",
		},
		{
			"a completed record is renewed", sql + "renew.sql",
			"WHERE {readable} AND r.state = 1\n", "WHERE {readable}\n",
			postgresLab, onPostgres + "renew-completed",
		},
		{
			"a completed record is released in PostgreSQL", sql + "release.sql",
			"AND {readable} AND state = 1", "AND {readable}",
			postgresLab, onPostgres + "release-completed",
		},
		{
			"a former owner releases", sql + "release.sql",
			"AND r.owner = $2::bytea AND", "AND $2::bytea IS NOT NULL AND",
			postgresLab, onPostgres + "release-zombie",
		},
		{
			"the purge deletes a live attempt", sql + "purge.sql",
			"AND NOT (state = 1 AND lease_until > now())", "",
			postgresLab, onPostgres + "purge-keeps",
		},
		{
			"a resolution meets another attempt", sql + "resolve.sql",
			"AND fence = $2::bigint", "AND $2::bigint > 0",
			postgresLab, onPostgres + "resolve-changed",
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
		local     = "local/local.go"
		localRoom = "local"
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
			"a cached answer is that of another request", local,
			"if r.Fingerprint != e.fingerprint {", "if len(r.Fingerprint) == 0 {",
			localRoom, "TestADifferentRequestIsAMismatchWithoutTheStore",
		},
		{
			"a cached answer outlives its record", local,
			"life: min(answer.Validity, maxAge), validity", "life: maxAge, validity",
			localRoom, "TestNoEntryOutlivesItsRecord",
		},
		{
			"an answer that was on its way undoes a resolution", local,
			"if s.resolved == resolved {", "if s.resolved >= resolved {",
			localRoom, "TestAResolutionHasAnEffectAtOnce",
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
