-- Complete: $1 id, $2 owner, $3 payload, $4 retention in µs.
--
-- A repetition by the owner that completed the record changes nothing of it and still writes it: the answer to a commit is what
-- confirms replication, and the first one may have been lost.
UPDATE {records} AS r SET
	state = 2,
	payload = CASE r.state WHEN 1 THEN $3::bytea ELSE r.payload END,
	valid_until = CASE r.state WHEN 1 THEN clock_timestamp() + $4::bigint * interval '1 microsecond' ELSE r.valid_until END,
	-- indexed, so left alone where it still lies late enough
	expires_at = CASE WHEN r.state = 1 AND r.expires_at < clock_timestamp() + $4::bigint * interval '1 microsecond'
		THEN clock_timestamp() + $4::bigint * interval '1 microsecond' ELSE r.expires_at END
WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable}
	AND (r.valid_until > clock_timestamp() OR (r.state = 1 AND r.lease_until > clock_timestamp()))
RETURNING 'completed'
