-- Count purgeable: of how many records purge.sql would delete or empty, $1 at most.
SELECT count(*) FROM (
	SELECT FROM {records} AS r WHERE {purgeable} LIMIT $1::bigint
) AS due
