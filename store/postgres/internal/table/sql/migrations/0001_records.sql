-- One row is one record. valid_until decides and, while state is 1, lease_until. Neither has an index, so that a completion is a heap-only
-- update; the purge looks for expires_at, which is written at the claim with room to spare.
--
-- Only where a completed record is valid for longer than its payload is replayed, expires_at is the end of that replay, to the microsecond:
-- the purge then empties the payload and moves expires_at to valid_until, where it finds the record again. Everywhere else it is
-- valid_until or later.
--
-- There are no CHECK constraints: the server plans each of them anew for every statement that writes the table. Every reader refuses what
-- they would (see readable.sql).
--
-- The fill factor reserves 2 % of a page for updates. The server removes dead row versions from a page once less than 10 % of it are free;
-- with a larger reserve it would leave each page with a dead version for every record.
CREATE TABLE {records} (
	lease_until  timestamptz NOT NULL, -- once the record is completed: when that was
	valid_until  timestamptz NOT NULL,
	expires_at   timestamptz NOT NULL, -- when the purge looks at the record
	created_at   timestamptz NOT NULL, -- the claim of the attempt that the record shows
	fence        bigint      NOT NULL, -- from the server's clock, in microseconds
	attempt      integer     NOT NULL,
	state        smallint    NOT NULL, -- 1: in progress, 2: completed
	version      smallint    NOT NULL, -- of the meaning of this row
	at_most_once boolean     NOT NULL DEFAULT false, -- this and the last three: the policy of the record
	id           bytea       NOT NULL PRIMARY KEY,
	owner        bytea       NOT NULL, -- zero: an operator completed the record; with its bits inverted: see reason
	fingerprint  bytea       NOT NULL,
	payload      bytea, -- NULL once its replay has ended
	reason       text, -- why the outcome of the attempt that the record shows is unknown; its owner said so, and is not its owner any more
	description  text, -- of the request, for operators; NULL without one, which takes no byte
	label        text        NOT NULL DEFAULT '',
	retention    numeric     NOT NULL DEFAULT 0, -- in microseconds, as is the horizon; a numeric of few digits takes few bytes
	horizon      numeric     NOT NULL DEFAULT 0
) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX {expiry_index} ON {records} (expires_at);

-- The names of the functions have a version. A release that needs other functions creates them beside these, so that a rolling deploy
-- runs both releases.

-- The claims of several callers, as far as they need no row to be rewritten. Parameters, all but the last of one length and in the order of
-- the IDs, which differ: $1 ids, $2 owners, $3 fingerprints, $4 the first eight bytes of the IDs as numbers, $5 leases, then the policies: $6
-- retentions, $7 horizons, both in microseconds, $8 labels, $9 at most once; $10 descriptions; $11 whether most of the IDs are expected to be there.
--
-- It returns the records that are there, for the caller to judge by the clock that comes with them, and those that it created, whose
-- version is NULL. A created record may be returned a second time, as one that is there. An ID that is not returned lost a race and is
-- claimed alone. A payload of more than 64 KiB is left out; size says that there is one.
--
-- It never waits for another creator of one of these records: it tries the lock of claim_new.sql, and reads the clock while it holds it. A
-- row or an insert of a transaction without the lock may still be in the way, and must not hold up the other calls: hence lock_timeout.
-- Without the other settings the server would plan anew for each number of IDs, or keep a plan that reads the whole table because it was small
-- once.
CREATE FUNCTION {claims}(bytea[], bytea[], bytea[], bigint[], interval[], bigint[], bigint[], text[], boolean[], text[], boolean)
RETURNS TABLE (id bytea, version smallint, state smallint, owner bytea, fingerprint bytea, attempt integer, fence bigint,
	lease_until timestamptz, valid_until timestamptz, clock timestamptz, at_most_once boolean, size integer, payload bytea)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '50ms'
AS $function$
#variable_conflict use_column
DECLARE
	answered bigint := 0;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE EXCEPTION 'a standby may be behind' USING ERRCODE = 'read_only_sql_transaction';
	END IF;
	FOR step IN 1..2 LOOP
		IF $11 = (step = 1) THEN
			RETURN QUERY
				SELECT r.id, r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, now(),
					r.at_most_once, octet_length(r.replayed), CASE WHEN octet_length(r.replayed) <= 65536 THEN r.replayed END
				FROM unnest($1) AS a (id) CROSS JOIN LATERAL (SELECT *, {replayed} AS replayed FROM {records} AS r WHERE r.id = a.id) AS r;
		ELSE
			RETURN QUERY
				INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
					lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon, description)
				SELECT a.id, 1, 1, 1, (date_part('epoch', a.at) * 1000000)::bigint, a.owner, a.fingerprint,
					a.at + a.lease, a.at + a.kept, a.at + a.kept + least(a.kept, interval '1 hour'), a.at, a.label, a.at_most_once, a.retention, a.horizon,
					nullif(a.description, '')
				FROM (
					SELECT *, clock_timestamp() AS at, (retention + horizon) * interval '1 microsecond' AS kept
					FROM (
						SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
							AS a (id, owner, fingerprint, lock, lease, retention, horizon, label, at_most_once, description)
						WHERE pg_try_advisory_xact_lock(a.lock # {records_literal}::regclass::oid::bigint)
						OFFSET 0
					) AS a
					OFFSET 0
				) AS a
				ON CONFLICT (id) DO NOTHING
				RETURNING r.id, NULL::smallint, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until,
					clock_timestamp(), NULL::boolean, NULL::integer, NULL::bytea;
		END IF;
		GET DIAGNOSTICS answered = ROW_COUNT;
		IF answered = cardinality($1) THEN
			RETURN;
		END IF;
	END LOOP;
END
$function$;

-- The completions of several attempts. Parameters, all of one length and in the order of the IDs, which differ: $1 ids, $2 owners, $3
-- payloads, $4 retentions, $5 horizons, both in microseconds. It returns the records that it completed; each of the others is completed
-- alone.
CREATE FUNCTION {completes}(bytea[], bytea[], bytea[], bigint[], bigint[]) RETURNS TABLE (id bytea, owner bytea)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '50ms'
AS $function$
#variable_conflict use_column
BEGIN
	RETURN QUERY
		UPDATE {records} AS r SET
			state = 2,
			payload = a.payload,
			lease_until = clock_timestamp(),
			valid_until = clock_timestamp() + (a.retention + a.horizon) * interval '1 microsecond',
			retention = a.retention,
			horizon = a.horizon,
			-- indexed, so left alone where it still lies late enough and no horizon follows
			expires_at = CASE WHEN a.horizon > 0 OR r.expires_at < clock_timestamp() + a.retention * interval '1 microsecond'
				THEN clock_timestamp() + a.retention * interval '1 microsecond' ELSE r.expires_at END
		FROM unnest($1, $2, $3, $4, $5) AS a (id, owner, payload, retention, horizon)
		WHERE r.id = a.id AND r.owner = a.owner AND {readable} AND r.state = 1
			AND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())
		RETURNING r.id, r.owner;
END
$function$;

-- The versions of this schema that were applied.
CREATE TABLE {migrations} (
	version    integer     NOT NULL PRIMARY KEY,
	applied_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO {migrations} (version) VALUES (1);
