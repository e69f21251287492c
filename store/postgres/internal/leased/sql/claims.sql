SELECT id, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, clock, at_most_once, size, payload
FROM {claims}($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::interval[], $6::bigint[], $7::bigint[], $8::text[], $9::boolean[], $10::text[], $11::boolean)
