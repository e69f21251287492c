-- Claim, where replays are common: $1 id. What it answers is what claim_new.sql would. A standby, which may be behind, answers no record,
-- so that the claim goes on to the statement that the standby refuses.
SELECT now(), version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once, {replayed}
FROM {records} AS r WHERE id = $1::bytea AND NOT pg_is_in_recovery()
