-- Resolve: $1 id, $2 fence, $3 payload, $4 retention in µs, $5 whether the operator saw no reason. The owner zero says that an operator
-- completed the record; the attempt that is thought dead finds that it lost it. The record keeps its policy: the horizon follows the
-- replay, and the record never ends earlier than it would have.
UPDATE {records} AS r SET
	state = 2,
	owner = '\x00000000000000000000000000000000'::bytea,
	payload = $3::bytea,
	lease_until = clock_timestamp(),
	valid_until = greatest(valid_until, clock_timestamp() + ($4::bigint + horizon) * interval '1 microsecond'),
	expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE id = $1::bytea AND {readable} AND state = 1 AND fence = $2::bigint
	AND NOT ($5::boolean AND reason IS NOT NULL) AND lease_until <= clock_timestamp() AND valid_until > clock_timestamp()
RETURNING 'resolved'
