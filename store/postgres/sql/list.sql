-- List: $1 how many. For people; the payload stays where it is.
SELECT id, true, state, attempt, fence,
	(extract(epoch FROM lease_until - now()) * 1000000)::bigint,
	(extract(epoch FROM valid_until - now()) * 1000000)::bigint,
	NULL::bytea
FROM {records} AS r
WHERE {readable} AND (valid_until > now() OR (state = 1 AND lease_until > now()))
LIMIT $1::bigint
