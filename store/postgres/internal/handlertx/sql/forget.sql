-- Forget: $1 id, $2 owner. It deletes the record if it is in progress, as a release does, so that a COMMIT that is still to come finds none.
DELETE FROM {records} AS r
WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable} AND state = 1
