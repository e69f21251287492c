-- Complete, in the transaction of a handler: $1 id, $2 owner, and what completion.sql of the table has. It fails with division_by_zero where
-- the record is not seen, not in progress any more, or another's.
--
-- The snapshot may be older than a renewal whose commit is slow. So where it says that the time of the record is over, the record is read once
-- more under its lock.
WITH done AS (
	UPDATE {records} AS r SET {completion}
	WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1
		AND (valid_until > {late} OR lease_until > {late} OR (
			SELECT h.valid_until > {late} OR h.lease_until > {late} FROM {records} AS h
			WHERE h.id = $1::bytea AND h.owner = $2::bytea AND h.state = 1
			FOR UPDATE))
	RETURNING true
)
SELECT 1 / count(*) FROM done
