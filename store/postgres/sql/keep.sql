-- Keep: the completed record of an attempt whose claim saw no row, as the last statement before COMMIT. $1 id, $2 owner, $3 fingerprint, $4
-- attempt, $5 fence, $6 payload, $7 retention in µs, $8 label, $9 the instant of the claim, $10 the mark of the transaction.
--
-- It fails with unique_violation where another record came in between, and with division_by_zero in a transaction that is not the one that
-- the attempt began: the COMMIT that follows in the same batch must not happen then.
INSERT INTO {records} (id, version, state, attempt, fence, owner, fingerprint, payload,
	lease_until, valid_until, expires_at, created_at, label)
VALUES ($1::bytea, 1, 2 / (current_setting('reprise.attempt', true) IS NOT DISTINCT FROM $10::text)::integer,
	$4::integer, $5::bigint, $2::bytea, $3::bytea, $6::bytea,
	clock_timestamp(), clock_timestamp() + $7::bigint * interval '1 microsecond', clock_timestamp() + $7::bigint * interval '1 microsecond',
	$9::timestamptz, $8::text)
