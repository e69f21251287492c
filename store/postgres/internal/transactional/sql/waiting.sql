-- What a claim for which no transaction is free can be told at once: the answer of seen.sql to $1, and whether another attempt has its lock;
-- $2 and $3 are the halves of the lock's key. It reads the list of locks and does not try the lock, because to
-- try it is to have it for a moment, in the way of a claim that could run.
SELECT now(), clock_timestamp(), pg_is_in_recovery(),
	r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, r.at_most_once, {replayed},
	EXISTS (
		SELECT FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid::bigint = $2::bigint AND objid::bigint = $3::bigint
	) AS held
FROM (SELECT) AS always LEFT JOIN {records} AS r ON r.id = $1::bytea
