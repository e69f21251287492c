package mutants

// The statements of the store over PostgreSQL. Much of what it decides is SQL, which make
// mutate does not break.
func init() {
	const (
		store = "store/postgres"
		sql   = store + "/sql"
		fast  = sql + "/migrations/0001_records.sql"
		lab   = "lab/postgres"

		suite   = "TestPostgresConformance/"
		txSuite = "TestPostgresTransactionalConformance/"
	)
	mutants = append(mutants, []mutant{
		{
			"anybody completes a record", sql + "/complete_own.sql",
			"AND owner = $2::bytea AND", "AND $2::bytea IS NOT NULL AND",
			lab, suite + "complete-not-owner",
		},
		{
			"anybody completes a record by the function", fast,
			"WHERE r.id = $1 AND r.owner = $2 AND {readable}", "WHERE r.id = $1 AND {readable}",
			lab, suite + "complete-not-owner",
		},
		{
			"anybody completes a record in a batch", fast,
			"WHERE r.id = a.id AND r.owner = a.owner AND {readable}", "WHERE r.id = a.id AND {readable}",
			lab, "TestPostgresCombinedRace",
		},
		{
			"a completion looks at the state alone", sql + "/complete_own.sql",
			"\n\tAND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())", "",
			lab, suite + "complete-unseen",
		},
		{
			"a completion by the function looks at the state alone", fast,
			"\n\t\tAND (r.valid_until > clock_timestamp() OR (r.state = 1 AND r.lease_until > clock_timestamp()));", ";",
			lab, suite + "complete-unseen",
		},
		{
			"a completion in a batch looks at the state alone", fast,
			"\n\t\t\tAND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())\n", "\n",
			lab, "TestPostgresCombinedRace",
		},
		{
			"a record is completed twice", sql + "/complete_own.sql",
			"AND {readable} AND state = 1\n", "AND {readable}\n",
			lab, suite + "complete-repeat",
		},
		{
			"a repeated completion has another payload", fast,
			"payload = CASE r.state WHEN 1 THEN $3 ELSE r.payload END", "payload = $3",
			lab, suite + "complete-repeat",
		},
		{
			"a repeated completion writes nothing", fast,
			"WHERE r.id = $1 AND r.owner = $2 AND {readable}\n", "WHERE r.id = $1 AND r.owner = $2 AND {readable} AND r.state = 1\n",
			lab, suite + "complete-repeat",
		},
		{
			"anybody releases a record", sql + "/release.sql",
			"AND r.owner = $2::bytea AND", "AND $2::bytea IS NOT NULL AND",
			lab, suite + "release-not-owner",
		},
		{
			"a completed record is released", sql + "/release.sql",
			"AND {readable} AND state = 1", "AND {readable}",
			lab, suite + "release-completed",
		},
		{
			"anybody renews a lease", sql + "/renew.sql",
			"ON r.id = a.asked_id AND r.owner = a.asked_owner\n\tWHERE", "ON r.id = a.asked_id\n\tWHERE",
			lab, suite + "renew-not-owner",
		},
		{
			"a renewal looks at the state alone", sql + "/renew.sql",
			"\n\t\tAND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())", "",
			lab, suite + "renew-unseen",
		},
		{
			"a completed record is renewed", sql + "/renew.sql",
			"WHERE {readable} AND r.state = 1\n", "WHERE {readable}\n",
			lab, suite + "renew-completed",
		},
		{
			"a renewal waits for one row", sql + "/renew.sql",
			"FOR NO KEY UPDATE OF r SKIP LOCKED", "FOR NO KEY UPDATE OF r",
			lab, "TestPostgresRenewSkipsWhatIsBusy",
		},

		{
			"a takeover ignores the fingerprint", store + "/seen.go",
			"case !bytes.Equal(r.fingerprint, c.Fingerprint[:]):", "case !live && r.state == rowCompleted && !bytes.Equal(r.fingerprint, c.Fingerprint[:]):",
			lab, suite + "takeover-binding",
		},
		{
			"a takeover by the function ignores the fingerprint", sql + "/verdict.sql",
			"WHEN r.fingerprint <> $3::bytea THEN", "WHEN r.state = 2 AND r.fingerprint <> $3::bytea THEN",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a completed record is taken over", sql + "/verdict.sql",
			"WHEN r.state = 2 THEN 'completed'\n", "",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a completed record is taken over where statements are prepared", store + "/seen.go",
			"case r.state == rowCompleted:\n\t\treturn wordCompleted", "case r.state == rowCompleted && live:\n\t\treturn wordCompleted",
			lab, suite + "takeover-never-of-completed",
		},
		{
			"a lease ends late", sql + "/verdict.sql",
			"WHEN r.lease_until > now() THEN", "WHEN r.lease_until >= now() THEN",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a retention ends late", sql + "/verdict.sql",
			"WHEN r.valid_until <= now() AND", "WHEN r.valid_until < now() AND",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a live lease ends with its retention", sql + "/verdict.sql",
			" AND NOT (r.state = 1 AND r.lease_until > now()) THEN 'new'", " THEN 'new'",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"one attempt too many", sql + "/verdict.sql",
			"r.attempt >= $5::integer", "r.attempt > $5::integer",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a takeover that is not allowed", sql + "/verdict.sql",
			"WHEN NOT $4::boolean OR (", "WHEN $4::boolean AND (",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"a record that cannot be read is new", sql + "/verdict.sql",
			"WHEN NOT {readable} THEN 'corrupt'\n\tWHEN r.valid_until", "WHEN NOT {readable} AND r.valid_until > now() THEN 'corrupt'\n\tWHEN r.valid_until",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"the fence of a takeover does not grow", fast,
			"ELSE greatest(r.fence + 1, (extract(epoch FROM started) * 1000000)::bigint) END", "ELSE r.fence END",
			lab, suite + "takeover",
		},
		{
			"the fence of a takeover is the clock", fast,
			"ELSE greatest(r.fence + 1, (extract(epoch FROM started) * 1000000)::bigint) END", "ELSE (extract(epoch FROM started) * 1000000)::bigint END",
			lab, "TestPostgresVerdictAtItsInstants",
		},
		{
			"the fence of a creation is the clock of before the wait", sql + "/claim_new.sql",
			"SELECT clock_timestamp() AS at\n", "SELECT now() AS at\n",
			lab, "TestPostgresFenceOfACreation",
		},
		{
			"a creation waits for no other", sql + "/claim_new.sql",
			"SELECT pg_advisory_xact_lock($4::bigint # {records_literal}::regclass::oid::bigint) OFFSET 0", "SELECT $4::bigint OFFSET 0",
			lab, "TestPostgresFenceOfACreation",
		},
		{
			"a creation by the function waits for no other", fast,
			"\t\t\tPERFORM pg_advisory_xact_lock(('x' || encode(substr($1, 1, 8), 'hex'))::bit(64)::bigint # {records_literal}::regclass::oid::bigint);\n", "",
			lab, "TestPostgresFenceOfACreation",
		},
		{
			"the fence of a creation by the function is the clock of before the wait", fast,
			"\t\t\tstarted := clock_timestamp();\n\t\t\tINSERT", "\t\t\tstarted := now();\n\t\t\tINSERT",
			lab, "TestPostgresFenceOfACreation",
		},
		{
			"a batch is held up by a row", fast,
			"CREATE FUNCTION {completes}(bytea[], bytea[], bytea[], interval[]) RETURNS TABLE (id bytea, owner bytea)\nLANGUAGE plpgsql\nSET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '50ms'",
			"CREATE FUNCTION {completes}(bytea[], bytea[], bytea[], interval[]) RETURNS TABLE (id bytea, owner bytea)\nLANGUAGE plpgsql\nSET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan",
			lab, "TestPostgresCombinedIsHeldUpByNobody",
		},
		{
			"a lost race is in progress", store + "/claim.go",
			"case created.fence == 0:\n\t\treturn reprise.ClaimResult{}, errLostRace", "case created.fence == 0:\n\t\treturn reprise.ClaimResult{Outcome: reprise.InProgress}, nil",
			lab, suite + "race-repeat",
		},
		{
			"a lost race is won", store + "/claim.go",
			"case created.fence == 0:\n\t\treturn reprise.ClaimResult{}, errLostRace", "case created.fence < 0:\n\t\treturn reprise.ClaimResult{}, errLostRace",
			lab, suite + "race-repeat",
		},
		{
			"a lease counts from before a wait", store + "/claim.go",
			"case created.waited(r.Lease):", "case false:",
			lab, "TestPostgresLeaseIsWhole",
		},
		{
			"a claim waits for the row of a lapsed record", fast,
			"FOR NO KEY UPDATE SKIP LOCKED", "FOR NO KEY UPDATE",
			lab, "TestPostgresClaimMeetsRelease",
		},
		{
			"a look believes a standby", sql + "/claim_look.sql",
			" AND NOT pg_is_in_recovery()", "",
			lab, "TestPostgresLookOfAStandby",
		},
		{
			"a claim by the function believes a standby", fast,
			"BEGIN\n\tIF pg_is_in_recovery() THEN\n\t\tRAISE EXCEPTION 'a standby may be behind' USING ERRCODE = 'read_only_sql_transaction';\n\tEND IF;\n\tFOR try",
			"BEGIN\n\tFOR try",
			lab, "TestPostgresLookOfAStandby",
		},
		{
			"a claim that its owner repeats revives what was completed", fast,
			"WHERE r.id = $1 AND (r.fence, r.state, r.lease_until) = (seen.fence, seen.state, seen.lease_until)\n\t\t\tRETURNING", "WHERE r.id = $1\n\t\t\tRETURNING",
			lab, "TestPostgresClaimAgainMeetsCompletion",
		},
		{
			"creations share a lock", sql + "/claim_new.sql",
			"SELECT pg_advisory_xact_lock(", "SELECT pg_advisory_xact_lock_shared(",
			lab, "TestPostgresFenceOfACreation",
		},
		{
			"creations in batches share a lock", fast,
			"WHERE pg_try_advisory_xact_lock(", "WHERE pg_try_advisory_xact_lock_shared(",
			lab, "TestPostgresBatchOfClaimsIsHeldUpByNobody",
		},
		{
			"a batch of claims is held up by an insert", fast,
			"SET plan_cache_mode = force_generic_plan SET lock_timeout = '50ms'\nAS $function$\n#variable_conflict use_column\nDECLARE", "SET plan_cache_mode = force_generic_plan\nAS $function$\n#variable_conflict use_column\nDECLARE",
			lab, "TestPostgresBatchOfClaimsIsHeldUpByNobody",
		},
		{
			"a completion goes by the beginning of its transaction", sql + "/complete_own.sql",
			"AND (valid_until > clock_timestamp() OR", "AND (valid_until > now() OR",
			lab, "TestPostgresConditionsOfWrites",
		},

		{
			"a purge waits for a claim", sql + "/purge.sql",
			"FOR UPDATE SKIP LOCKED", "FOR UPDATE",
			lab, "TestPostgresPurgeSkipsWhatIsBeingReclaimed",
		},
		{
			"purges share a row", sql + "/purge.sql",
			"FOR UPDATE SKIP LOCKED", "FOR SHARE SKIP LOCKED",
			lab, "TestPostgresSharesNoRow",
		},
		{
			"a purge leaves the rest of an instant", sql + "/purge.sql",
			"WHERE expires_at >= coalesce(", "WHERE expires_at > coalesce(",
			lab, "TestPostgresConditionsOfReads",
		},
		{
			"a purge takes live attempts", sql + "/purge.sql",
			" AND NOT (state = 1 AND lease_until > now())", "",
			lab, "TestPostgresPurgeKeepsWhatIsSeen",
		},
		{
			"a purge takes what is valid", sql + "/purge.sql",
			"AND valid_until <= now() AND", "AND",
			lab, "TestPostgresPurgeKeepsWhatIsSeen",
		},
		{
			"a count of what can be purged has live attempts", sql + "/purgeable.sql",
			" AND NOT (state = 1 AND lease_until > now())", "",
			lab, "TestPostgresPurgeKeepsWhatIsSeen",
		},
		{
			"a purge reads what it deleted again", sql + "/purge.sql",
			"WHERE expires_at >= coalesce($2::timestamptz, '-infinity') AND", "WHERE ($2::timestamptz IS NULL OR true) AND",
			lab, "TestPostgresPurgeUnderOldSnapshot",
		},

		{
			"COMMIT comes before the record", store + "/commit.go",
			"\ts.addKeep(&batch, a, &r)\n\tkept := len(batch.calls)\n\tbatch.add(s.sql.commit, nil)\n", "\tkept := len(batch.calls)\n\tbatch.add(s.sql.commit, nil)\n\ts.addKeep(&batch, a, &r)\n",
			lab, "TestPostgresAnotherAttemptInBetween",
		},
		{
			"an attempt takes no lock", sql + "/open.sql",
			"SELECT pg_try_advisory_xact_lock($1::bigint),", "SELECT $1::bigint IS NOT NULL,",
			lab, txSuite + "claim-in-progress",
		},
		{
			"an answer without effects needs no lock", sql + "/locked.sql",
			"pg_try_advisory_xact_lock($1::bigint)", "($1::bigint IS NOT NULL)",
			lab, "TestPostgresDiscardLosesItsLock",
		},
		{
			"the look for a lost COMMIT waits for no lock", sql + "/take_lock.sql",
			"SELECT pg_advisory_xact_lock($1::bigint)", "SELECT $1::bigint",
			lab, "TestPostgresCommitReplyLost",
		},
		{
			"a duplicate waits for a transaction", sql + "/waiting.sql",
			"WHERE locktype = 'advisory' AND granted AND", "WHERE locktype = 'none' AND granted AND",
			lab, "TestPostgresDuplicatesTakeNoSlot",
		},
		{
			"a lock of two numbers is that of an attempt", sql + "/waiting.sql",
			" AND objsubid = 1\n", "\n",
			lab, "TestPostgresHeldLocks",
		},
		{
			"a transaction that the handler began is the attempt's", sql + "/keep.sql",
			"2 / coalesce(now() = $10::timestamptz, true)::integer", "2 + 0 * coalesce(now() = $10::timestamptz, true)::integer",
			lab, "TestPostgresTxEndedByTheHandler",
		},
		{
			"an answer without effects is kept in another transaction", sql + "/same.sql",
			"SELECT 1 / (now() = $1::timestamptz)::integer", "SELECT 1 + (now() = $1::timestamptz)::integer",
			lab, "TestPostgresTxEndedByTheHandler",
		},
		{
			"an attempt replaces another takeover", sql + "/replace.sql",
			"r.state = 1 AND r.fence = $10::bigint AND", "r.state = 1 AND $10::bigint >= 0 AND",
			lab, "TestPostgresAnotherAttemptInBetween",
		},
		{
			"an attempt replaces a lease that lives again", sql + "/replace.sql",
			"r.fence = $10::bigint AND r.lease_until <= clock_timestamp()))", "r.fence = $10::bigint))",
			lab, "TestPostgresAnotherAttemptInBetween",
		},
		{
			"an attempt replaces a completed record", sql + "/replace.sql",
			"(r.valid_until <= clock_timestamp() AND NOT (", "(r.state = 2 OR r.valid_until <= clock_timestamp() AND NOT (",
			lab, "TestPostgresAnotherAttemptInBetween",
		},
		{
			"a limit of the session is raised", sql + "/open.sql",
			"CASE WHEN current_setting('statement_timeout') = '0' OR current_setting('statement_timeout')::interval > $2::text::interval\n", "CASE WHEN true\n",
			lab, "TestPostgresStricterLimitsStand",
		},
		{
			"a session keeps the limit of an attempt", sql + "/open.sql",
			"set_config('statement_timeout', $2::text, true)", "set_config('statement_timeout', $2::text, false)",
			lab, "TestPostgresStricterLimitsStand",
		},

		{
			"a cancelled wait for a standby is a success", store + "/notices.go",
			"if n.Routine == \"SyncRepWaitForLSN\" {", "if n.Routine == \"\" {",
			lab, "TestPostgresCancelledStandbyWait",
		},
		{
			"the look for a lost COMMIT is confirmed by nobody", sql + "/committed.sql",
			"UPDATE {records} SET lease_until = lease_until\nWHERE id = $1::bytea AND owner = $2::bytea AND version = 1 AND state = 2\nRETURNING 'committed'",
			"SELECT 'committed' FROM {records}\nWHERE id = $1::bytea AND owner = $2::bytea AND version = 1 AND state = 2",
			lab, "TestPostgresCancelledStandbyWait",
		},
		{
			"the record of another owner is the one that was committed", sql + "/committed.sql",
			"AND owner = $2::bytea AND", "AND $2::bytea IS NOT NULL AND",
			lab, "TestPostgresCommitReplyLost",
		},

		{
			"an operator resolves another attempt", sql + "/resolve.sql",
			"AND state = 1 AND fence = $2::bigint\n", "AND state = 1 AND $2::bigint > 0\n",
			lab, suite + "resolve-changed",
		},
		{
			"an operator forgets another attempt", sql + "/forget.sql",
			"AND state = 1 AND fence = $2::bigint\n", "AND state = 1 AND $2::bigint > 0\n",
			lab, suite + "resolve-changed",
		},
		{
			"an operator discards what can be read", sql + "/discard.sql",
			" AND NOT {readable}\n", "\n",
			lab, suite + "resolve-unreadable",
		},
	}...)
}
