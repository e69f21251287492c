-- Claim, after the statement that created or rewrote the record had to wait: $1 id, $2 owner, $3 lease, $4 retention and horizon, in µs. The
-- lease and the validity count from now. It answers nothing where the record is over, or another owner took it over.
UPDATE {records} AS r SET
	lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
	valid_until = clock_timestamp() + $4::bigint * interval '1 microsecond',
	expires_at = clock_timestamp() + ($4::bigint + least($4::bigint, 3600000000)) * interval '1 microsecond'
WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1
	AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())
RETURNING (extract(epoch FROM lease_until - clock_timestamp()) * 1000000)::bigint
