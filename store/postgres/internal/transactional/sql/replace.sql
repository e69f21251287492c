-- Replace: the completed record of an attempt whose claim saw a row, as the last statement before COMMIT: one that was past its retention,
-- or a lapsed one with the fence $13, otherwise 0. The other parameters are those of keep.sql.
--
-- It fails with division_by_zero where another record stands in the way by now.
WITH kept AS (
	INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint, payload,
		lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon, description)
	SELECT $1::bytea, 1, 2, $4::integer, $5::bigint, $2::bytea, $3::bytea, $6::bytea,
		t.at, t.at + ($7::bigint + $8::bigint) * interval '1 microsecond', t.at + $7::bigint * interval '1 microsecond', $12::timestamptz,
		$9::text, $10::boolean, $7::bigint, $8::bigint, nullif($11::text, '')
	FROM (SELECT clock_timestamp() AS at) AS t
	ON CONFLICT (id) DO UPDATE SET
		state = 2,
		attempt = EXCLUDED.attempt,
		fence = EXCLUDED.fence,
		owner = EXCLUDED.owner,
		fingerprint = EXCLUDED.fingerprint,
		payload = EXCLUDED.payload,
		lease_until = EXCLUDED.lease_until,
		valid_until = EXCLUDED.valid_until,
		expires_at = EXCLUDED.expires_at,
		created_at = EXCLUDED.created_at,
		label = EXCLUDED.label,
		at_most_once = EXCLUDED.at_most_once,
		retention = EXCLUDED.retention,
		horizon = EXCLUDED.horizon,
		description = EXCLUDED.description
	WHERE {readable} AND (
		(r.valid_until <= clock_timestamp() AND NOT (r.state = 1 AND r.lease_until > clock_timestamp()))
		OR (r.state = 1 AND r.fence = $13::bigint AND r.lease_until <= clock_timestamp()))
	RETURNING true
)
SELECT 1 / count(*) FROM kept
