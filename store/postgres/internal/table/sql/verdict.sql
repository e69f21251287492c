-- What a claim makes of the record r that it sees, in the order of the Store contract. Parameters: $2 owner, $3 fingerprint,
-- $4 takeover allowed, $5 attempts allowed (0: any number).
--
-- now() is the start of the statement, before its snapshot was taken. A clock that is read later could call a record lapsed
-- that was renewed in between; this one cannot: what the snapshot shows was so, or came to be so, after it.
CASE
	WHEN NOT {readable} THEN 'corrupt'
	WHEN r.valid_until <= now() AND NOT (r.state = 1 AND r.lease_until > now()) THEN 'new'
	WHEN r.fingerprint <> $3::bytea THEN 'mismatch'
	WHEN r.state = 2 THEN CASE WHEN {replayed} IS NULL THEN 'expired' ELSE 'completed' END
	WHEN r.lease_until > now() THEN CASE WHEN r.owner = $2::bytea THEN 'again' ELSE 'in progress' END
	WHEN r.owner = $2::bytea THEN 'own lapsed'
	WHEN r.at_most_once OR NOT $4::boolean OR ($5::integer > 0 AND r.attempt >= $5::integer) THEN 'lapsed'
	ELSE 'takeover'
END
