SELECT {open}($1::bigint, $2::bigint, $3::bytea)
