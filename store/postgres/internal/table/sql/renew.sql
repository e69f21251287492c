-- Renew: $1 ids, $2 owners, $3 leases in µs, of one length.
--
-- A row that another statement holds is skipped: one record that is just being completed must not hold up all the others. It
-- is reported as busy, because the snapshot of this statement still shows it in progress.
WITH asked AS MATERIALIZED (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS a (asked_id, asked_owner, lease, n)
), held AS MATERIALIZED (
	SELECT r.id, a.lease
	FROM asked AS a JOIN {records} AS r ON r.id = a.asked_id AND r.owner = a.asked_owner
	WHERE {readable} AND r.state = 1
		AND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())
	FOR NO KEY UPDATE OF r SKIP LOCKED
), renewed AS (
	UPDATE {records} AS r
	SET lease_until = clock_timestamp() + h.lease * interval '1 microsecond'
	FROM held AS h WHERE r.id = h.id
	RETURNING r.id, r.owner
)
SELECT CASE
	WHEN renewed.id IS NOT NULL THEN 'renewed'
	WHEN r.state = 2 AND r.valid_until > now() THEN 'completed'
	WHEN r.state = 1 AND (r.valid_until > now() OR r.lease_until > now()) THEN 'busy'
	ELSE 'lost'
END
FROM asked AS a
LEFT JOIN renewed ON renewed.id = a.asked_id AND renewed.owner = a.asked_owner
LEFT JOIN (SELECT * FROM {records} AS r WHERE {readable}) AS r ON r.id = a.asked_id AND r.owner = a.asked_owner
ORDER BY a.n
