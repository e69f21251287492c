-- Claim: $1 id, $2 owner, $3 fingerprint, $4 takeover, $5 attempts, $6 lease, $7 retention (both in µs).
--
-- It reads first, and writes only what it may: a replay leaves no trace. Every value of the new row is computed from the row that was
-- read, so the write is refused when that row changed meanwhile; then the answer has a verdict to claim and no
-- claim, or no row at all, and the caller runs the statement again.
WITH seen AS MATERIALIZED (
	SELECT *, {verdict} AS verdict FROM {records} WHERE id = $1::bytea
), claimed AS (
	INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
		lease_until, valid_until, expires_at, created_at)
	SELECT $1::bytea, 1, 1,
		CASE s.verdict WHEN 'again' THEN s.attempt WHEN 'takeover' THEN s.attempt + 1 ELSE 1 END,
		CASE s.verdict WHEN 'again' THEN s.fence ELSE greatest(s.fence + 1, nextval({fence_literal})) END,
		$2::bytea, $3::bytea,
		t.at + t.lease,
		t.at + t.retention,
		t.at + t.retention + least(t.retention, interval '1 hour'),
		CASE WHEN s.verdict IN ('again', 'takeover') THEN s.created_at ELSE t.at END
	FROM (SELECT clock_timestamp() AS at,
		$6::bigint * interval '1 microsecond' AS lease,
		$7::bigint * interval '1 microsecond' AS retention) AS t
	LEFT JOIN seen AS s ON true
	WHERE s.verdict IS NULL OR s.verdict IN ('new', 'again', 'takeover')
	ON CONFLICT (id) DO UPDATE SET
		state = 1,
		attempt = EXCLUDED.attempt,
		fence = EXCLUDED.fence,
		owner = EXCLUDED.owner,
		fingerprint = EXCLUDED.fingerprint,
		payload = NULL,
		created_at = EXCLUDED.created_at,
		-- from the clock as it is now: EXCLUDED was computed before the wait for the row
		lease_until = clock_timestamp() + $6::bigint * interval '1 microsecond',
		valid_until = clock_timestamp() + $7::bigint * interval '1 microsecond',
		-- indexed, so left alone where it still lies late enough
		expires_at = CASE WHEN r.expires_at >= EXCLUDED.valid_until THEN r.expires_at ELSE EXCLUDED.expires_at END
	WHERE EXISTS (SELECT FROM seen AS s
		WHERE (s.fence, s.state, s.lease_until) = (r.fence, r.state, r.lease_until))
	RETURNING attempt, fence, lease_until
)
SELECT 'claimed' AS verdict, attempt, fence,
	(extract(epoch FROM lease_until - clock_timestamp()) * 1000000)::bigint AS lease_left, NULL::bytea AS payload
FROM claimed
UNION ALL
SELECT verdict, attempt, fence,
	(extract(epoch FROM lease_until - now()) * 1000000)::bigint,
	CASE verdict WHEN 'completed' THEN payload END
FROM seen WHERE NOT EXISTS (SELECT FROM claimed)
