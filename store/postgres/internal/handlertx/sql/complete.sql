-- Complete, in the transaction of a handler: $1 id, $2 owner, $3 payload, $4 retention, $5 horizon, both in µs. It fails with division_by_zero
-- where the record is not seen, not in progress any more, or another's.
--
-- The snapshot may be older than a renewal whose commit is slow. So where it says that the time of the record is over, the record is read once
-- more under its lock.
WITH done AS (
	UPDATE {records} AS r SET
		state = 2,
		payload = $3::bytea,
		lease_until = clock_timestamp(),
		valid_until = clock_timestamp() + ($4::bigint + $5::bigint) * interval '1 microsecond',
		retention = $4::bigint,
		horizon = $5::bigint,
		-- indexed, so left alone where it still lies late enough and no horizon follows
		expires_at = CASE WHEN $5::bigint > 0 OR r.expires_at < clock_timestamp() + $4::bigint * interval '1 microsecond'
			THEN clock_timestamp() + $4::bigint * interval '1 microsecond' ELSE r.expires_at END
	WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1
		AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp() OR (
			SELECT h.valid_until > clock_timestamp() OR h.lease_until > clock_timestamp() FROM {records} AS h
			WHERE h.id = $1::bytea AND h.owner = $2::bytea AND h.state = 1
			FOR UPDATE))
	RETURNING true
)
SELECT 1 / count(*) FROM done
