-- Renew: $1 ids, $2 owners, $3 leases in µs, of one length.
--
-- A row that another statement holds is skipped: one record that is just being completed must not hold up all the others. It is reported as
-- busy, also where the snapshot of this statement shows that it has ended: the call that holds it may have found it before its end. So a
-- record has ended only where this statement holds it, and reads the clock afterwards. That record is written as it is: a statement that has
-- judged it and waits for this one judges it again, by a later clock.
--
-- Each record is looked up through the primary key. The server takes the conditions on a record for ones that hardly any row
-- meets: joined with the whole table, a few hundred leases would be compared with every row of it. The lock keeps the one subquery apart,
-- and OFFSET the other.
WITH asked AS MATERIALIZED (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS a (asked_id, asked_owner, lease, n)
), held AS MATERIALIZED (
	SELECT r.id, r.valid_until, r.lease_until, a.lease
	FROM asked AS a CROSS JOIN LATERAL (
		SELECT r.id, r.valid_until, r.lease_until FROM {records} AS r
		WHERE r.id = a.asked_id AND r.owner = a.asked_owner AND {readable} AND r.state = 1
		FOR NO KEY UPDATE SKIP LOCKED
	) AS r
), judged AS MATERIALIZED (
	SELECT id, lease, valid_until > {late} OR lease_until > {late} AS runs FROM held
), renewed AS (
	UPDATE {records} AS r
	SET lease_until = CASE WHEN j.runs THEN {late} + j.lease ELSE r.lease_until END, revision = r.revision + 1
	FROM judged AS j WHERE r.id = j.id
	RETURNING r.id, r.owner, j.runs
)
SELECT CASE
	WHEN renewed.runs THEN 'renewed'
	WHEN renewed.id IS NOT NULL THEN 'lost'
	WHEN r.state = 2 AND r.valid_until > {clock} THEN 'completed'
	WHEN r.state = 1 THEN 'busy'
	ELSE 'lost'
END
FROM asked AS a
LEFT JOIN renewed ON renewed.id = a.asked_id AND renewed.owner = a.asked_owner
LEFT JOIN LATERAL (
	SELECT r.state, r.valid_until FROM {records} AS r
	WHERE r.id = a.asked_id AND r.owner = a.asked_owner AND {readable} OFFSET 0
) AS r ON true
ORDER BY a.n
