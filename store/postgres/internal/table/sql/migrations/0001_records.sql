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
	label        text        NOT NULL DEFAULT '',
	retention    numeric     NOT NULL DEFAULT 0, -- in microseconds, as is the horizon; a numeric of few digits takes few bytes
	horizon      numeric     NOT NULL DEFAULT 0
) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX {expiry_index} ON {records} (expires_at);

-- The names of the functions have a version. A release that needs other functions creates them beside these, so that a rolling deploy
-- runs both releases.

-- A claim of the leased store that rewrites a row, or may: claim_new.sql and claims_v1 decide the others. Parameters: $1 id, $2 owner, $3
-- fingerprint, $4 takeover allowed, $5 attempts allowed (0: any number), $6 lease, then the policy: $7 retention, $8 horizon, all three in
-- microseconds, $9 label, $10 at most once.
--
-- It reads first and writes only what it may. A record that was not seen is inserted and never updated, and one that was seen is
-- updated and never inserted: its row may be deleted in between, and then no value computed from it is true.
--
-- A takeover locks the row first and passes over a row that is locked, so that it never waits for another transaction.
CREATE FUNCTION {claim}(bytea, bytea, bytea, boolean, integer, bigint, bigint, bigint, text, boolean,
	OUT verdict text, OUT attempt integer, OUT fence bigint, OUT lease_left bigint, OUT payload bytea)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
	lease   interval := $6 * interval '1 microsecond';
	kept    interval := ($7 + $8) * interval '1 microsecond';
	spare   interval := least(kept, interval '1 hour');
	seen    record;
	started timestamptz;
	until   timestamptz;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE EXCEPTION 'a standby may be behind' USING ERRCODE = 'read_only_sql_transaction';
	END IF;
	FOR try IN 1..8 LOOP
		SELECT r.*, {verdict} AS verdict INTO seen FROM {records} AS r WHERE r.id = $1;
		IF seen.verdict NOT IN ('new', 'again', 'takeover') THEN
			verdict := seen.verdict;
			attempt := seen.attempt;
			fence := seen.fence;
			lease_left := (extract(epoch FROM seen.lease_until - now()) * 1000000)::bigint;
			IF verdict = 'completed' THEN
				payload := seen.payload;
			END IF;
			RETURN;
		END IF;

		IF seen.verdict IS NULL THEN
			-- A transaction that creates the record of an ID holds this lock until it has committed, and reads the clock while it holds
			-- it. So no fence lies below one that was granted and released meanwhile.
			PERFORM pg_advisory_xact_lock(('x' || encode(substr($1, 1, 8), 'hex'))::bit(64)::bigint # {records_literal}::regclass::oid::bigint);
			started := clock_timestamp();
			INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
				lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon)
			VALUES ($1, 1, 1, 1, (extract(epoch FROM started) * 1000000)::bigint, $2, $3,
				started + lease, started + kept, started + kept + spare, started, $9, $10, $7, $8)
			ON CONFLICT (id) DO NOTHING
			RETURNING r.attempt, r.fence, r.lease_until INTO attempt, fence, until;
		ELSE
			IF seen.verdict <> 'again' THEN
				PERFORM FROM {records} AS r
				WHERE r.id = $1 AND (r.fence, r.state, r.lease_until) = (seen.fence, seen.state, seen.lease_until)
				FOR NO KEY UPDATE SKIP LOCKED;
				IF NOT FOUND THEN
					PERFORM pg_sleep(0.0005 * try);
					CONTINUE;
				END IF;
			END IF;
			started := clock_timestamp();
			UPDATE {records} AS r SET
				state = 1,
				attempt = CASE seen.verdict WHEN 'again' THEN r.attempt WHEN 'takeover' THEN r.attempt + 1 ELSE 1 END,
				fence = CASE seen.verdict WHEN 'again' THEN r.fence
					ELSE greatest(r.fence + 1, (extract(epoch FROM started) * 1000000)::bigint) END,
				owner = $2,
				fingerprint = $3,
				payload = NULL,
				reason = NULL,
				label = $9,
				at_most_once = $10,
				retention = $7,
				horizon = $8,
				created_at = CASE seen.verdict WHEN 'again' THEN r.created_at ELSE started END,
				lease_until = started + lease,
				valid_until = started + kept,
				-- indexed, so left alone where it still lies late enough
				expires_at = CASE WHEN r.expires_at >= started + kept THEN r.expires_at ELSE started + kept + spare END
			WHERE r.id = $1 AND (r.fence, r.state, r.lease_until) = (seen.fence, seen.state, seen.lease_until)
			RETURNING r.attempt, r.fence, r.lease_until INTO attempt, fence, until;
		END IF;
		CONTINUE WHEN attempt IS NULL;

		-- A write that had to wait for another transaction has the clock of before the wait, and its lease may have run out.
		IF clock_timestamp() - started > interval '10 milliseconds' THEN
			started := clock_timestamp();
			UPDATE {records} AS r SET
				lease_until = started + lease,
				valid_until = started + kept,
				expires_at = CASE WHEN r.expires_at >= started + kept THEN r.expires_at ELSE started + kept + spare END
			WHERE r.id = $1
			RETURNING r.lease_until INTO until;
		END IF;
		verdict := 'claimed';
		lease_left := (extract(epoch FROM until - clock_timestamp()) * 1000000)::bigint;
		RETURN;
	END LOOP;
	-- Another transaction is writing the lapsed record and has not committed: the caller tries again in a moment.
	verdict := CASE seen.verdict WHEN 'takeover' THEN 'in progress' ELSE 'lost race' END;
	attempt := 0;
	fence := 0;
	lease_left := 1000;
END
$function$;

-- A completion of the leased store. Parameters: $1 id, $2 owner, $3 payload, $4 retention, $5 horizon, both in microseconds.
--
-- A repetition by the owner that completed the record changes nothing of it and still writes it: the answer to a commit is what
-- confirms replication, and the first one may have been lost.
CREATE FUNCTION {complete}(bytea, bytea, bytea, bigint, bigint) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
	replayed interval := $4 * interval '1 microsecond';
	kept     interval := ($4 + $5) * interval '1 microsecond';
BEGIN
	UPDATE {records} AS r SET
		state = 2,
		payload = CASE r.state WHEN 1 THEN $3 ELSE r.payload END,
		lease_until = CASE r.state WHEN 1 THEN clock_timestamp() ELSE r.lease_until END,
		valid_until = CASE r.state WHEN 1 THEN clock_timestamp() + kept ELSE r.valid_until END,
		retention = CASE r.state WHEN 1 THEN $4 ELSE r.retention END,
		horizon = CASE r.state WHEN 1 THEN $5 ELSE r.horizon END,
		-- indexed, so left alone where it still lies late enough and no horizon follows
		expires_at = CASE WHEN r.state = 1 AND ($5 > 0 OR r.expires_at < clock_timestamp() + replayed)
			THEN clock_timestamp() + replayed ELSE r.expires_at END
	WHERE r.id = $1 AND r.owner = $2 AND {readable}
		AND (r.valid_until > clock_timestamp() OR (r.state = 1 AND r.lease_until > clock_timestamp()));
	RETURN FOUND;
END
$function$;

-- The claims of several callers, as far as they need no row to be rewritten. Parameters, all but the last of one length and in the order of
-- the IDs, which differ: $1 ids, $2 owners, $3 fingerprints, $4 the first eight bytes of the IDs as numbers, $5 leases, then the policies: $6
-- retentions, $7 horizons, both in microseconds, $8 labels, $9 at most once; $10 whether most of the IDs are expected to be there.
--
-- It returns the records that are there, for the caller to judge by the clock that comes with them, and those that it created, whose
-- version is NULL. A created record may be returned a second time, as one that is there. An ID that is not returned lost a race and is
-- claimed alone. A payload of more than 64 KiB is left out; size says that there is one.
--
-- It never waits for another creator of one of these records: it tries the lock of claim_v1, and reads the clock while it holds it. A row or
-- an insert of a transaction without the lock may still be in the way, and must not hold up the other calls: hence lock_timeout. Without
-- the other settings the server would plan anew for each number of IDs, or keep a plan that reads the whole table because it was small
-- once.
CREATE FUNCTION {claims}(bytea[], bytea[], bytea[], bigint[], interval[], bigint[], bigint[], text[], boolean[], boolean)
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
		IF $10 = (step = 1) THEN
			RETURN QUERY
				SELECT r.id, r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, now(),
					r.at_most_once, octet_length(r.replayed), CASE WHEN octet_length(r.replayed) <= 65536 THEN r.replayed END
				FROM unnest($1) AS a (id) CROSS JOIN LATERAL (SELECT *, {replayed} AS replayed FROM {records} AS r WHERE r.id = a.id) AS r;
		ELSE
			RETURN QUERY
				INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
					lease_until, valid_until, expires_at, created_at, label, at_most_once, retention, horizon)
				SELECT a.id, 1, 1, 1, (date_part('epoch', a.at) * 1000000)::bigint, a.owner, a.fingerprint,
					a.at + a.lease, a.at + a.kept, a.at + a.kept + least(a.kept, interval '1 hour'), a.at, a.label, a.at_most_once, a.retention, a.horizon
				FROM (
					SELECT *, clock_timestamp() AS at, (retention + horizon) * interval '1 microsecond' AS kept
					FROM (
						SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
							AS a (id, owner, fingerprint, lock, lease, retention, horizon, label, at_most_once)
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
-- payloads, $4 retentions, $5 horizons, both in microseconds. It returns the records that it completed; complete_v1 decides about the others.
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
