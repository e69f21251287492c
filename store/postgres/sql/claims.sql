SELECT id, size, clock, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once, payload
FROM {claims}($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::smallint[], $9::text[], $10::boolean)
