-- Renew: $1 ids, $2 owners, $3 leases in µs, of one length.
--
-- A row that another statement holds is skipped: one record that is just being completed must not hold up all the others. It
-- is reported as busy, because the snapshot of this statement still shows it in progress.
--
-- Each record is looked up through the primary key. The server takes the conditions on a record for ones that hardly any row
-- meets: joined with the whole table, a few hundred leases would be compared with every row of it. The lock keeps the one subquery apart,
-- and OFFSET the other.
WITH asked AS MATERIALIZED (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS a (asked_id, asked_owner, lease, n)
), held AS MATERIALIZED (
	SELECT r.id, a.lease
	FROM asked AS a CROSS JOIN LATERAL (
		SELECT r.id FROM {records} AS r
		WHERE r.id = a.asked_id AND r.owner = a.asked_owner AND {readable} AND r.state = 1
			AND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())
		FOR NO KEY UPDATE SKIP LOCKED
	) AS r
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
LEFT JOIN LATERAL (
	SELECT r.state, r.valid_until, r.lease_until FROM {records} AS r
	WHERE r.id = a.asked_id AND r.owner = a.asked_owner AND {readable} OFFSET 0
) AS r ON true
ORDER BY a.n
