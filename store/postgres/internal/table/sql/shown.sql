-- What an operator sees of the row r, without its payload. visible says whether it is seen: a record that cannot be read always is.
r.id, {readable} AS readable, r.state = 2 AS completed, r.state = 2 AND {replayed} IS NULL AS expired,
	r.label, r.at_most_once, r.retention::bigint, r.horizon::bigint, r.fingerprint, r.description, r.attempt, {fence} AS fence, r.created_at,
	r.lease_until, r.valid_until,
	r.owner = '\x00000000000000000000000000000000'::bytea AS resolved, coalesce(octet_length({replayed}), 0) AS size,
	CASE WHEN r.state = 1 THEN r.reason END AS reason,
	NOT {readable} OR r.valid_until > now() OR (r.state = 1 AND r.lease_until > now()) AS visible
