-- Claim that rewrites the row that an earlier statement saw: $1 to $10 as in claim_new.sql, $11 the attempt, $12 whether it is another one than
-- that of the row, with a fence of its own; then what was seen: $13 fence, $14 state, $15 end of the lease, $16 owner.
--
-- It answers what claim_new.sql answers of a record that it creates, or nothing where the row is another one by now (renewed, completed,
-- resolved, claimed by another owner, released or purged), or where what was seen has ended meanwhile: the lease of a claim that is
-- repeated, or the record that is taken over.
--
-- Another attempt never waits. It passes over a row that is locked. It holds the lock of claim_new.sql and reads the clock afterwards: a
-- transaction that creates the record has read an earlier one, and would create it below this fence if this record were released
-- meanwhile. The owner's own repetition waits, because it has to find what another of its calls made of the row.
WITH held AS MATERIALIZED (
	SELECT true FROM {records} AS r
	WHERE id = $1::bytea AND $12::boolean AND pg_try_advisory_xact_lock($4::bigint # {records_literal}::regclass::oid::bigint)
	FOR NO KEY UPDATE SKIP LOCKED
), started AS MATERIALIZED (
	SELECT clock_timestamp() AS at, ($6::bigint + $7::bigint) * interval '1 microsecond' AS kept
	FROM (SELECT true FROM held UNION ALL SELECT true WHERE NOT $12::boolean OFFSET 0) AS free
)
UPDATE {records} AS r SET
	state = 1,
	attempt = $11::integer,
	fence = CASE WHEN $12::boolean THEN greatest(r.fence + 1, (date_part('epoch', s.at) * 1000000)::bigint) ELSE r.fence END,
	owner = $2::bytea,
	fingerprint = $3::bytea,
	payload = NULL,
	reason = NULL,
	label = $8::text,
	at_most_once = $9::boolean,
	retention = $6::bigint,
	horizon = $7::bigint,
	description = nullif($10::text, ''),
	created_at = CASE WHEN $12::boolean THEN s.at ELSE r.created_at END,
	lease_until = s.at + $5::interval,
	valid_until = s.at + s.kept,
	-- indexed, so left alone where it still lies late enough, and no later than it would be put
	expires_at = CASE WHEN r.expires_at BETWEEN s.at + s.kept AND s.at + s.kept + least(s.kept, interval '1 hour')
		THEN r.expires_at ELSE s.at + s.kept + least(s.kept, interval '1 hour') END
FROM started AS s
WHERE r.id = $1::bytea AND {readable}
	AND r.fence = $13::bigint AND r.state = $14::smallint AND r.lease_until = $15::timestamptz AND r.owner = $16::bytea
	-- claimed again, taken over, or new
	AND CASE WHEN NOT $12::boolean THEN r.lease_until > clock_timestamp() WHEN $11::integer > 1 THEN r.valid_until > clock_timestamp() ELSE true END
RETURNING clock_timestamp(), NULL::smallint, NULL::smallint, NULL::bytea, NULL::bytea, r.attempt, r.fence, r.lease_until, r.valid_until, NULL::boolean, NULL::bytea
