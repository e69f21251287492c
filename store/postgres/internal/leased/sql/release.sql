-- Release: $1 id, $2 owner. It answers what was there: whether it can be read, and whether it was the owner's.
WITH seen AS MATERIALIZED (
	SELECT {readable} AS readable, r.owner = $2::bytea AS own FROM {records} AS r WHERE id = $1::bytea
), released AS (
	DELETE FROM {records} AS r
	WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable} AND state = 1
)
SELECT readable, own FROM seen
