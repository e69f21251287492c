-- Attempt: $1 id, $2 owner, $3 fingerprint, $4 takeover, $5 attempts. One row, whether there is a record or not; its last column is
-- the fence of the lapsed record that the attempt takes over, or 0.
--
-- It runs after the statement that took the lock, so that its snapshot is younger than the lock.
SELECT coalesce(s.verdict, 'new'),
	CASE s.verdict WHEN 'takeover' THEN s.attempt + 1 ELSE 1 END,
	CASE WHEN s.verdict IS NULL OR s.verdict IN ('new', 'takeover') THEN greatest(s.fence + 1, nextval({fence_literal})) ELSE s.fence END,
	coalesce((extract(epoch FROM s.lease_until - now()) * 1000000)::bigint, 0),
	CASE s.verdict WHEN 'completed' THEN s.payload END,
	CASE s.verdict WHEN 'takeover' THEN s.fence ELSE 0 END
FROM (VALUES (1)) AS always (one)
LEFT JOIN (SELECT *, {verdict} AS verdict FROM {records} WHERE id = $1::bytea) AS s ON true
