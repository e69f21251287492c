-- Unknown: $1 id, $2 owner, $3 the same with its bits inverted, $4 reason. Inverted, the owner is that of no call but this one: whatever
-- else it asks for, the record is another's, which is not taken over. So a repetition finds the record, and changes nothing of it.
UPDATE {records} AS r SET
	owner = $3::bytea,
	at_most_once = true,
	reason = CASE r.owner WHEN $2::bytea THEN $4::text ELSE r.reason END,
	-- A claim that began a moment ago judges by its start, when an end of now is still to come.
	lease_until = r.created_at,
	valid_until = CASE r.owner WHEN $2::bytea THEN clock_timestamp() + (r.retention + r.horizon)::bigint * interval '1 microsecond' ELSE r.valid_until END,
	-- indexed, so left alone where it still lies late enough
	expires_at = greatest(r.expires_at, CASE r.owner WHEN $2::bytea THEN clock_timestamp() + (r.retention + r.horizon)::bigint * interval '1 microsecond' END)
WHERE id = $1::bytea AND owner IN ($2::bytea, $3::bytea) AND {readable} AND state = 1
	AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp())
RETURNING 'unknown'
