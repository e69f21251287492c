-- Inspect: $1 id. It answers also for a record that cannot be read, so that this can be said.
SELECT id, {readable}, state, attempt, fence,
	(extract(epoch FROM lease_until - now()) * 1000000)::bigint,
	(extract(epoch FROM valid_until - now()) * 1000000)::bigint,
	payload
FROM {records} AS r
WHERE id = $1::bytea AND (NOT {readable} OR valid_until > now() OR (state = 1 AND lease_until > now()))
