-- Again, where the answer to a COMMIT was lost: $1 id, $2 owner. It answers 2 where the owner has completed the record, 1 where the record
-- still runs, 0 where it is over, and nothing where it is another's.
--
-- Until the COMMIT is visible, every snapshot shows the record as it was. So this waits for the transaction that writes the record, and
-- reads the clock afterwards. It writes the record as it is, because the answer to a commit is what confirms replication.
UPDATE {records} AS r SET revision = revision + 1
WHERE id = $1::bytea AND owner = $2::bytea AND {readable}
RETURNING CASE
	WHEN state = 2 AND valid_until > {late} THEN 2
	WHEN state = 1 AND (valid_until > {late} OR lease_until > {late}) THEN 1
	ELSE 0
END::smallint
