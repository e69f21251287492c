-- Again, where a call of an owner ended no record: $1 id, $2 owner, $3 the owner that an earlier call of it may have left in the record. It
-- answers 2 where the owner has completed the record, 1 where the record still runs, 0 where it is over, and nothing where it is another's.
--
-- The statement before judged the record by its snapshot. A call that found the record before its end may commit after it, and until then
-- every snapshot shows the record as it was. So only a statement that holds the row says that its time is over: this one waits for the call
-- that writes the record, and reads the clock afterwards. It writes the record as it is: a statement that has judged the record and waits
-- for this one judges it again, by a later clock; and the answer to a commit is what confirms replication, where the answer to the first
-- completion was lost.
UPDATE {records} AS r SET lease_until = lease_until
WHERE id = $1::bytea AND owner IN ($2::bytea, $3::bytea) AND {readable}
RETURNING CASE
	WHEN state = 2 AND valid_until > clock_timestamp() THEN 2
	WHEN state = 1 AND (valid_until > clock_timestamp() OR lease_until > clock_timestamp()) THEN 1
	ELSE 0
END::smallint
