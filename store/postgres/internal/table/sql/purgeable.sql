-- Purgeable: how many records purge.sql would delete, $1 at most.
SELECT count(*) FROM (
	SELECT FROM {records}
	WHERE expires_at <= now() AND valid_until <= now() AND NOT (state = 1 AND lease_until > now())
	LIMIT $1::bigint
) AS gone
