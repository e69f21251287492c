-- Release: $1 id, $2 owner. The answer says whether the record that was there can be read.
WITH seen AS MATERIALIZED (
	SELECT {readable} AS readable FROM {records} AS r WHERE id = $1::bytea
), released AS (
	DELETE FROM {records} AS r
	WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable} AND state = 1
)
SELECT readable FROM seen
