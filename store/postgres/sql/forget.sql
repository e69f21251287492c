-- Forget: $1 id, $2 owner. It empties the row if the record is in progress, as a release does, so that a COMMIT that is still to come finds
-- no record. The row stays for a minute, with its fence.
UPDATE {records} AS r SET revision = revision + 1, owner = decode(repeat('00', 16), 'hex'), fingerprint = decode(repeat('00', 32), 'hex'),
	lease_until = 0, valid_until = 0, due_at = {late} + 60000000, label = '', description = '', reason = ''
WHERE r.id = $1::bytea AND r.owner = $2::bytea AND {readable} AND state = 1
