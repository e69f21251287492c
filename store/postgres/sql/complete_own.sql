-- Complete: $1 id, $2 owner, and what completion.sql has. It answers one row where it completed the record.
UPDATE {records} AS r SET {completion}
WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 1 AND (valid_until > {late} OR lease_until > {late})
RETURNING state
