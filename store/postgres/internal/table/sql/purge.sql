-- Purge: $1 how many, $2 where in the index to begin, NULL for its start, $3 the advisory lock without which it does nothing, NULL for
-- none. It deletes records that are not seen any more, and empties those whose payload is not replayed any more. It answers how many they
-- were and where it came to.
--
-- The beginning is for the sake of entries that are deleted already: while an old snapshot keeps them, every statement that starts at
-- the front reads them all again. Arrays and not IN: with IN the planner reads the table. SKIP LOCKED: a row that is being claimed again
-- stays.
WITH lock AS MATERIALIZED (
	SELECT coalesce(pg_try_advisory_xact_lock($3::bigint), true) AS held
), due AS MATERIALIZED (
	SELECT r.id, r.expires_at, r.valid_until <= now() AS over
	FROM {records} AS r
	WHERE (SELECT held FROM lock) AND r.expires_at >= coalesce($2::timestamptz, '-infinity') AND {purgeable}
	ORDER BY r.expires_at
	LIMIT $1::bigint
	FOR UPDATE SKIP LOCKED
), deleted AS (
	DELETE FROM {records} WHERE id = ANY (ARRAY(SELECT id FROM due WHERE over))
), emptied AS (
	UPDATE {records} SET payload = NULL, expires_at = valid_until
	WHERE id = ANY (ARRAY(SELECT id FROM due WHERE NOT over))
)
SELECT count(*), max(expires_at) FROM due
