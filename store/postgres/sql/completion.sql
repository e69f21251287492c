-- What a completion writes into the row r: $3 payload, $4 retention, $5 horizon.
state = 2,
revision = r.revision + 1,
payload = $3::bytea,
lease_until = {late},
replay_until = {late} + $4::bigint,
valid_until = {late} + $4::bigint + $5::bigint,
retention = $4::bigint,
horizon = $5::bigint,
-- indexed, so left alone where it still lies late enough and no horizon follows
due_at = CASE WHEN $5::bigint > 0 OR r.due_at < {late} + $4::bigint THEN {late} + $4::bigint ELSE r.due_at END
