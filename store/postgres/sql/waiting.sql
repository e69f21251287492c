-- What a claim for which no transaction is free can be told at once: the parameters of attempt.sql, and $6 and $7, the halves of its lock's
-- key. held says that another attempt has the lock. It reads the list of locks and does not try the lock, because to
-- try it is to have it for a moment, in the way of a claim that could run.
SELECT verdict, attempt, fence, lease_left, payload, EXISTS (
	SELECT FROM pg_locks
	WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid::bigint = $6::bigint AND objid::bigint = $7::bigint
) AS held
FROM {attempt}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer)
