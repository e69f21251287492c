-- Purge: $1 how many, $2 where in the index to begin. It deletes records that are not seen any more, and empties those whose payload is not
-- replayed any more. It answers how many they were and where it came to.
--
-- The beginning is for the sake of entries that are deleted already: while an old snapshot keeps them, every statement that starts at
-- the front reads them all again. Arrays and not IN: with IN the planner reads the table. SKIP LOCKED: a row that is being claimed again
-- stays.
WITH due AS MATERIALIZED (
	SELECT r.id, r.due_at, r.valid_until <= {clock} AS over
	FROM {records} AS r
	WHERE r.due_at >= $2::bigint AND {purgeable}
	ORDER BY r.due_at
	LIMIT $1::bigint
	FOR UPDATE SKIP LOCKED
), deleted AS (
	DELETE FROM {records} WHERE id = ANY (ARRAY(SELECT id FROM due WHERE over))
), emptied AS (
	UPDATE {records} SET payload = NULL, due_at = valid_until, revision = revision + 1
	WHERE id = ANY (ARRAY(SELECT id FROM due WHERE NOT over))
)
SELECT count(*), coalesce(max(due_at), 0) FROM due
