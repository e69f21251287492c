-- The claims of a batch. A record has a version, and one that the batch created none.
SELECT id, size IS NOT NULL AND payload IS NULL, version IS NULL, clock, coalesce(version, 0::smallint), state, owner, fingerprint, attempt, fence,
	lease_until, valid_until, coalesce(at_most_once <> 0, false), payload
FROM {claims}($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::smallint[], $9::text[], $10::boolean)
