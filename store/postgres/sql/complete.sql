SELECT {complete_v2}($1::bytea, $2::bytea, $3::bytea, $4::bigint)
