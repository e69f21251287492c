SELECT id, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, clock, size, payload
FROM {claims}($1::bytea[], $2::bytea[], $3::bytea[], $4::text[], $5::bigint[], $6::interval[], $7::interval[], $8::interval[], $9::boolean)
