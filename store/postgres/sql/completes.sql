SELECT id, owner FROM {completes}($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
