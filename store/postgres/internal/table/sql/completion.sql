-- What a completion writes into the row r: $3 payload, $4 retention, $5 horizon, both in µs.
state = 2,
payload = $3::bytea,
lease_until = clock_timestamp(),
valid_until = clock_timestamp() + ($4::bigint + $5::bigint) * interval '1 microsecond',
retention = $4::bigint,
horizon = $5::bigint,
-- indexed, so left alone where it still lies late enough and no horizon follows
expires_at = CASE WHEN $5::bigint > 0 OR r.expires_at < clock_timestamp() + $4::bigint * interval '1 microsecond'
	THEN clock_timestamp() + $4::bigint * interval '1 microsecond' ELSE r.expires_at END
