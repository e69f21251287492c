-- Keep: $1 id, $2 owner, $3 fingerprint, $4 attempt, $5 fence, $6 payload, $7 retention in µs, $8 fence of the record taken
-- over. The completed record goes in whole, as the last statement before COMMIT.
--
-- It divides by zero when another record stands in the way, because the COMMIT that follows in the same batch must not happen
-- then, and a failed statement is what stops it.
WITH kept AS (
	INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint, payload,
		lease_until, valid_until, expires_at, created_at)
	SELECT $1::bytea, 1, 2, $4::integer, $5::bigint, $2::bytea, $3::bytea, $6::bytea,
		t.at,
		t.at + t.retention,
		t.at + t.retention,
		t.at
	FROM (SELECT clock_timestamp() AS at, $7::bigint * interval '1 microsecond' AS retention) AS t
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
		created_at = EXCLUDED.created_at
	WHERE r.version = 1 AND (
		(r.valid_until <= clock_timestamp() AND NOT (r.state = 1 AND r.lease_until > clock_timestamp()))
		OR (r.state = 1 AND r.fence = $8::bigint AND r.lease_until <= clock_timestamp()))
	RETURNING 1
)
SELECT 1 / count(*) FROM kept
