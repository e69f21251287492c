SELECT id, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, clock, at_most_once, size, payload
FROM {claims}($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::smallint[], $9::text[], $10::boolean)
