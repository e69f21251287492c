-- Claim of a new record: $1 id, $2 owner, $3 fingerprint, $4 lease, then the policy: $5 retention, $6 horizon, $7 label, $8 at most once;
-- $9 description. It answers the fence and how much of the lease is left, or nothing where there is a row.
INSERT INTO {records} AS r (id, owner, fingerprint, fence, claimed_at, lease_until, valid_until, due_at,
	retention, horizon, label, at_most_once, description, attempt, version, state, revision, replay_until, reason)
SELECT $1::bytea, $2::bytea, $3::bytea, at, at, at + $4::bigint, at + kept, at + kept + least(kept, 3600000000),
	$5::bigint, $6::bigint, $7::text, $8::smallint, $9::text, 1, 1, 1, 1, 0, ''
FROM (SELECT {late} AS at, $5::bigint + $6::bigint AS kept OFFSET 0) AS s
ON CONFLICT (id) DO NOTHING
RETURNING r.fence, r.lease_until - {late}
