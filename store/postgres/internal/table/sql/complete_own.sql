-- Complete: $1 id, $2 owner, $3 payload, $4 retention, $5 horizon, both in µs. It answers one row where it completed the record.
UPDATE {records} AS r SET
	state = 2,
	payload = $3::bytea,
	lease_until = clock_timestamp(),
	valid_until = clock_timestamp() + ($4::bigint + $5::bigint) * interval '1 microsecond',
	retention = $4::bigint,
	horizon = $5::bigint,
	-- indexed, so left alone where it still lies late enough and no horizon follows
	expires_at = CASE WHEN $5::bigint > 0 OR r.expires_at < clock_timestamp() + $4::bigint * interval '1 microsecond'
		THEN clock_timestamp() + $4::bigint * interval '1 microsecond' ELSE r.expires_at END
WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1
	AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())
RETURNING state
