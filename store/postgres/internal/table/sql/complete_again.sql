-- Complete, where complete_own.sql completed nothing: $1 id, $2 owner. It answers one row where the owner has completed the record already, and
-- writes it as it is: the answer to a commit is what confirms replication, and that to the first one may have been lost.
UPDATE {records} AS r SET lease_until = lease_until
WHERE id = $1::bytea AND owner = $2::bytea AND {readable} AND state = 2 AND valid_until > clock_timestamp()
RETURNING state
