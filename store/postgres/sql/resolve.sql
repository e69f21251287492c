-- Resolve: $1 id, $2 fence, $3 payload, $4 retention in µs, $5 an owner that nobody has, so that the attempt that is thought
-- dead finds that it lost the record.
UPDATE {records} AS r SET
	state = 2,
	owner = $5::bytea,
	payload = $3::bytea,
	valid_until = clock_timestamp() + $4::bigint * interval '1 microsecond',
	expires_at = greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')
WHERE id = $1::bytea AND {readable} AND state = 1 AND fence = $2::bigint
	AND lease_until <= clock_timestamp() AND valid_until > clock_timestamp()
RETURNING 'resolved'
