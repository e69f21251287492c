-- Purge: $1 how many, $2 where in the index to begin, NULL for its start. It answers how many were deleted and where it came to.
--
-- The beginning is for the sake of entries that are deleted already: while an old snapshot keeps them, every statement that starts at
-- the front reads them all again. An array and not IN: with IN the planner reads the table. SKIP LOCKED: a row that is
-- being claimed again stays. now() and not clock_timestamp(): only a stable function can be looked up in the index.
WITH gone AS (
	DELETE FROM {records} WHERE id = ANY (ARRAY(
		SELECT id FROM {records}
		WHERE expires_at >= coalesce($2::timestamptz, '-infinity') AND expires_at <= now()
			AND valid_until <= now() AND NOT (state = 1 AND lease_until > now())
		ORDER BY expires_at
		LIMIT $1::bigint
		FOR UPDATE SKIP LOCKED
	))
	RETURNING expires_at
)
SELECT count(*), max(expires_at) FROM gone
