-- Forget: $1 id, $2 fence.
DELETE FROM {records} AS r
WHERE id = $1::bytea AND {readable} AND state = 1 AND fence = $2::bigint
	AND lease_until <= clock_timestamp() AND valid_until > clock_timestamp()
RETURNING 'forgotten'
