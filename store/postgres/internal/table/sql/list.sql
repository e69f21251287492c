-- List: $1 the ID behind which it begins, $2 the set of the states, $3 the label or '' (all but that of probes), $4 the least age in µs, $5 how many records it
-- answers.
--
-- It answers one row at least: how many records it looked at, the last of them, and an estimate of how many the table has. The others say
-- which record they show, as what number of those that were looked at. It looks at few records at a time, in a number that the
-- planner knows: so it reads them along the primary key.
WITH looked AS MATERIALIZED (
	SELECT {shown}, row_number() OVER (ORDER BY r.id) AS n
	FROM {records} AS r
	WHERE r.id > $1::bytea
	ORDER BY r.id
	LIMIT {scanned_at_once}
), picked AS (
	SELECT * FROM looked
	WHERE visible AND octet_length(id) = 32
		AND 0 <> $2::integer & CASE
			WHEN NOT readable THEN 1 << 5
			WHEN expired THEN 1 << 4
			WHEN completed THEN 1 << 3
			WHEN lease_until > now() THEN 1 << 1
			WHEN reason IS NOT NULL THEN 1 << 6
			ELSE 1 << 2 END
		AND CASE $3::text WHEN '' THEN NOT readable OR label <> {probe_label} ELSE readable AND label = $3::text END
		AND ($4::bigint = 0 OR NOT readable OR created_at <= now() - $4::bigint * interval '1 microsecond')
	ORDER BY n
	LIMIT $5::bigint
)
SELECT now(), picked.*, s.looked, s.last, s.total
FROM (
	SELECT (SELECT count(*) FROM looked) AS looked,
		(SELECT id FROM looked ORDER BY n DESC LIMIT 1) AS last,
		(SELECT CASE WHEN reltuples > 0 AND relpages > 0
			THEN reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::bigint) ELSE 0 END::bigint
			FROM pg_class WHERE oid = {records_literal}::regclass) AS total
) AS s
LEFT JOIN picked ON true
ORDER BY picked.n
