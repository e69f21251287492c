-- Inspect: $1 id.
SELECT now(), {shown}, r.payload
FROM {records} AS r
WHERE r.id = $1::bytea
