-- Unknown: $1 id, $2 owner with its bits inverted (see unknown.sql of both stores), $3 reason. It follows keep.sql or replace.sql in their
-- transaction, and makes the record that of an unknown outcome.
UPDATE {records} SET
	state = 1,
	owner = $2::bytea,
	payload = NULL,
	reason = $3::text,
	at_most_once = true,
	lease_until = created_at,
	expires_at = valid_until
WHERE id = $1::bytea
