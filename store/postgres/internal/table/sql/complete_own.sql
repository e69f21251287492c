-- Complete: $1 id, $2 owner, $3 payload, $4 retention. It answers one row where it completed the record.
UPDATE {records} AS r SET
	state = 2,
	payload = $3::bytea,
	lease_until = clock_timestamp(),
	valid_until = clock_timestamp() + $4::interval,
	-- indexed, so left alone where it still lies late enough
	expires_at = CASE WHEN r.expires_at < clock_timestamp() + $4::interval THEN clock_timestamp() + $4::interval ELSE r.expires_at END
WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1
	AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())
RETURNING state
