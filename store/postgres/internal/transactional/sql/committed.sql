-- Committed: $1 id, $2 the owner that the record has then. A row says that the owner's transaction committed. It is written once more, because
-- the commit of that write is what a synchronous standby confirms.
UPDATE {records} SET lease_until = lease_until
WHERE id = $1::bytea AND owner = $2::bytea AND version = 1 AND (state = 2 OR reason IS NOT NULL)
RETURNING 'committed'
