SELECT verdict, attempt, fence, lease_left, payload, replaced
FROM {attempt}($1::bytea, $2::bytea, $3::bytea, $4::boolean, $5::integer)
