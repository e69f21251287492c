SELECT {keep}($1::bytea, $2::bytea, $3::bytea, $4::integer, $5::bigint, $6::bytea, $7::bigint, $8::bigint)
