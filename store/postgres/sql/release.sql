-- Release: $1 id, $2 owner. The answer says whether the record can be read at all.
WITH seen AS MATERIALIZED (
	SELECT version FROM {records} WHERE id = $1::bytea
), released AS (
	DELETE FROM {records} AS r
	WHERE r.id = $1::bytea AND r.owner = $2::bytea AND r.version = 1 AND r.state = 1
)
SELECT CASE WHEN version = 1 THEN 'released' ELSE 'corrupt' END FROM seen
