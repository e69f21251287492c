-- The record of a claim, where there is one: $1 id. A standby, which may be behind, answers none, and refuses the statement that follows.
SELECT {clock}, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once <> 0, {replayed}
FROM {records} AS r WHERE id = $1::bytea AND NOT pg_is_in_recovery()
