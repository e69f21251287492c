-- Claim: $1 id, $2 owner, $3 fingerprint, $4 the first eight bytes of the id, $5 lease, then the policy: $6 retention, $7 horizon, both in
-- µs, $8 label, $9 at most once; $10 description, '' for none.
--
-- It answers the record that is there, for the caller to judge by the clock that comes with it (see seen.go), or the record that it
-- created, whose version is NULL, or nothing: it lost a race. It writes nothing where a record is seen. A record that it creates takes
-- nothing from an older one, and a standby refuses it.
--
-- Whoever creates the record of an ID holds the lock until it has committed, and reads the clock while it holds it. So no fence lies below
-- one that was granted and released meanwhile. OFFSET 0 keeps the order of the steps.
WITH seen AS MATERIALIZED (
	SELECT now() AS clock, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once, {replayed} AS payload
	FROM {records} AS r WHERE id = $1::bytea
), created AS (
	INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
		lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon, description)
	SELECT $1::bytea, 1, 1, 1, (date_part('epoch', at) * 1000000)::bigint, $2::bytea, $3::bytea,
		at + $5::interval, at + kept, at + kept + least(kept, interval '1 hour'), at, $8::text, $9::boolean, $6::bigint, $7::bigint,
		nullif($10::text, '')
	FROM (
		SELECT clock_timestamp() AS at, ($6::bigint + $7::bigint) * interval '1 microsecond' AS kept
		FROM (SELECT pg_advisory_xact_lock($4::bigint # {records_literal}::regclass::oid::bigint) OFFSET 0) AS locked
		OFFSET 0
	) AS started
	WHERE NOT EXISTS (SELECT FROM seen)
	ON CONFLICT (id) DO NOTHING
	RETURNING clock_timestamp() AS clock, r.attempt, r.fence, r.lease_until, r.valid_until
)
SELECT clock, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once, payload FROM seen
UNION ALL
SELECT clock, NULL, NULL, NULL, NULL, attempt, fence, lease_until, valid_until, NULL, NULL FROM created
