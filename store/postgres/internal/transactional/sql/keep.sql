-- Keep: the completed record of an attempt whose claim saw no row, as the last statement before COMMIT. $1 id, $2 owner, $3 fingerprint, $4
-- attempt, $5 fence, $6 payload, then the policy: $7 retention, $8 horizon, both in µs, $9 label, $10 at most once; $11 description, '' for
-- none; $12 the instant of the claim, $13 that at which its transaction began, NULL for another one.
--
-- It fails with unique_violation where another record came in between, and with division_by_zero where the handler ended the
-- transaction (see same.sql): the COMMIT that follows in the same batch must not happen then.
INSERT INTO {records} (id, version, state, attempt, fence, owner, fingerprint, payload,
	lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon, description)
VALUES ($1::bytea, 1, 2 / coalesce(now() = $13::timestamptz, true)::integer,
	$4::integer, $5::bigint, $2::bytea, $3::bytea, $6::bytea,
	clock_timestamp(), clock_timestamp() + ($7::bigint + $8::bigint) * interval '1 microsecond',
	clock_timestamp() + $7::bigint * interval '1 microsecond', $12::timestamptz, $9::text, $10::boolean, $7::bigint, $8::bigint,
	nullif($11::text, ''))
