-- Seen: $1 id. It answers one row, also where there is no record: the clock is read after the record.
SELECT now(), clock_timestamp(), pg_is_in_recovery(),
	r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, r.at_most_once, {replayed}
FROM (SELECT) AS always LEFT JOIN {records} AS r ON r.id = $1::bytea
