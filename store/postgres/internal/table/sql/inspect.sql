-- Inspect: $1 id.
SELECT now(), {shown}, {replayed}
FROM {records} AS r
WHERE r.id = $1::bytea
