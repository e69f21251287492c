-- Discard: $1 id. It deletes a record that cannot be read, and no other.
DELETE FROM {records} AS r WHERE id = $1::bytea AND NOT {readable}
RETURNING 'discarded'
