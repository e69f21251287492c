SELECT verdict, attempt, fence, lease_left, payload
FROM {claim}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer, $6::bigint, $7::bigint, $8::bigint, $9::text, $10::boolean)
