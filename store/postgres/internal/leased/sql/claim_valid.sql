-- Claim, with how long a completed record stays valid, and how long ago it was completed, in µs from the start of the statement. It looks at
-- the record as it was then, and answers NULL where another one was completed meanwhile. The fence tells them apart, and a completed record
-- does not change.
SELECT c.verdict, c.attempt, c.fence, c.lease_left, c.payload,
	(extract(epoch FROM r.valid_until - now()) * 1000000)::bigint, (extract(epoch FROM now() - r.lease_until) * 1000000)::bigint
FROM {claim}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer, $6::bigint, $7::bigint, $8::text) AS c
LEFT JOIN {records} AS r ON r.id = $1::bytea AND r.state = 2 AND r.fence = c.fence
