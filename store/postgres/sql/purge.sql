-- Purge: $1 how many. An array and not IN: with IN the planner reads the table. SKIP LOCKED: a row that is being claimed again
-- stays. now() and not clock_timestamp(): only a stable function can be looked up in the index.
DELETE FROM {records} WHERE id = ANY (ARRAY(
	SELECT id FROM {records}
	WHERE expires_at <= now() AND valid_until <= now() AND NOT (state = 1 AND lease_until > now())
	ORDER BY expires_at
	LIMIT $1::bigint
	FOR UPDATE SKIP LOCKED
))
