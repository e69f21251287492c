-- What a request costs. A server plans each CHECK of a table anew for every statement that writes it, so the checks go: what they refused,
-- every reader refuses (see readable.sql), and NOT NULL stays. The change is one of the catalogue alone. It needs the table for itself
-- for a moment, and gives up rather than let every request queue behind a backup or a long transaction that it waits for. (A vacuum that is
-- in the way is cancelled by the server after deadlock_timeout, a second.)
--
-- A record now says more to its operators. label is the name of its policy. created_at is the claim of the attempt that the record
-- shows. lease_until, once the record is completed, is when that was. A record with the owner zero, which no attempt has, was
-- completed by an operator. The functions of version 2 stay for its releases. They know nothing of this: what they write keeps
-- the label and the created_at of the row, and completes without saying when.
DO $migration$
DECLARE
	own   text := current_setting('lock_timeout');
	drops text;
BEGIN
	SELECT string_agg(format(', DROP CONSTRAINT %I', conname), '') INTO drops
	FROM pg_constraint WHERE conrelid = {records_literal}::regclass AND contype = 'c';
	PERFORM set_config('lock_timeout', '3s', true);
	EXECUTE 'ALTER TABLE ' || {records_literal} || ' ADD COLUMN label text NOT NULL DEFAULT ''''' || coalesce(drops, '');
	PERFORM set_config('lock_timeout', own, true);
END
$migration$;

-- A claim of the leased store that rewrites a row, or may: the parameters of version 1, and $8 the label. What needs no such row is decided by
-- the statement of claim.sql and by claims_v1.
--
-- It reads first and writes only what it may. A record that was not seen is inserted and never updated, and one that was seen is
-- updated and never inserted: its row may be deleted in between, and then no value computed from it is true.
--
-- A takeover locks the row first and passes over a row that is locked, so that it never waits for a transaction of somebody else.
CREATE FUNCTION {claim_v2}(bytea, bytea, bytea, boolean, integer, bigint, bigint, text,
	OUT verdict text, OUT attempt integer, OUT fence bigint, OUT lease_left bigint, OUT payload bytea)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
	lease     interval := $6 * interval '1 microsecond';
	retention interval := $7 * interval '1 microsecond';
	spare     interval := least(retention, interval '1 hour');
	seen      record;
	started   timestamptz;
	until     timestamptz;
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
			-- Whoever creates the record of this ID holds this lock until it has committed, and reads the clock while it holds it. So no
			-- fence lies below one that was granted and released meanwhile.
			PERFORM pg_advisory_xact_lock(('x' || encode(substr($1, 1, 8), 'hex'))::bit(64)::bigint # {records_literal}::regclass::oid::bigint);
			started := clock_timestamp();
			INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
				lease_until, valid_until, expires_at, created_at, label)
			VALUES ($1, 1, 1, 1, (extract(epoch FROM started) * 1000000)::bigint, $2, $3,
				started + lease, started + retention, started + retention + spare, started, $8)
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
				label = $8,
				created_at = CASE seen.verdict WHEN 'again' THEN r.created_at ELSE started END,
				lease_until = started + lease,
				valid_until = started + retention,
				-- indexed, so left alone where it still lies late enough
				expires_at = CASE WHEN r.expires_at >= started + retention THEN r.expires_at ELSE started + retention + spare END
			WHERE r.id = $1 AND (r.fence, r.state, r.lease_until) = (seen.fence, seen.state, seen.lease_until)
			RETURNING r.attempt, r.fence, r.lease_until INTO attempt, fence, until;
		END IF;
		CONTINUE WHEN attempt IS NULL;

		-- A write that had to wait for another transaction has the clock of before the wait, and its lease may have run out.
		IF clock_timestamp() - started > interval '10 milliseconds' THEN
			started := clock_timestamp();
			UPDATE {records} AS r SET
				lease_until = started + lease,
				valid_until = started + retention,
				expires_at = CASE WHEN r.expires_at >= started + retention THEN r.expires_at ELSE started + retention + spare END
			WHERE r.id = $1
			RETURNING r.lease_until INTO until;
		END IF;
		verdict := 'claimed';
		lease_left := (extract(epoch FROM until - clock_timestamp()) * 1000000)::bigint;
		RETURN;
	END LOOP;
	-- Where it is a lapsed record, somebody is writing it and has not committed: come back in a moment.
	verdict := CASE seen.verdict WHEN 'takeover' THEN 'in progress' ELSE 'lost race' END;
	attempt := 0;
	fence := 0;
	lease_left := 1000;
END
$function$;

-- A completion of the leased store, with the parameters and the answer of version 1.
--
-- A repetition by the owner that completed the record changes nothing of it and still writes it: the answer to a commit is what
-- confirms replication, and the first one may have been lost.
CREATE FUNCTION {complete_v2}(bytea, bytea, bytea, bigint) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
	retention interval := $4 * interval '1 microsecond';
BEGIN
	UPDATE {records} AS r SET
		state = 2,
		payload = CASE r.state WHEN 1 THEN $3 ELSE r.payload END,
		lease_until = CASE r.state WHEN 1 THEN clock_timestamp() ELSE r.lease_until END,
		valid_until = CASE r.state WHEN 1 THEN clock_timestamp() + retention ELSE r.valid_until END,
		-- indexed, so left alone where it still lies late enough
		expires_at = CASE WHEN r.state = 1 AND r.expires_at < clock_timestamp() + retention
			THEN clock_timestamp() + retention ELSE r.expires_at END
	WHERE r.id = $1 AND r.owner = $2 AND {readable}
		AND (r.valid_until > clock_timestamp() OR (r.state = 1 AND r.lease_until > clock_timestamp()));
	RETURN FOUND;
END
$function$;

-- The claims of several callers, as far as they need no row to be rewritten. Parameters, all but the last of one length and in the order of
-- the IDs, which differ: $1 ids, $2 owners, $3 fingerprints, $4 labels, $5 the first eight bytes of the IDs as numbers, $6 leases, $7
-- retentions, $8 how long the purge lets a new record be; $9 whether most of the IDs are expected to be there.
--
-- It answers the records that are there, for the caller to judge by the clock that comes with them, and those that it created, whose
-- version is NULL. One that it created may be answered a second time, as one that is there. An ID that is not answered lost a race and is
-- claimed alone. A payload of more than 64 KiB stays where it is; size says that there is one.
--
-- It waits for nobody who creates one of these records: the lock is that of claim_v2, tried and not waited for, and the clock is read while
-- it is held. A row or an insert of somebody who takes no lock may still be in the way, and must not hold all the others up: hence
-- lock_timeout. Without the other settings the server plans anew for each number of IDs, or keeps a plan that reads the whole table because
-- the table was small once.
CREATE FUNCTION {claims}(bytea[], bytea[], bytea[], text[], bigint[], interval[], interval[], interval[], boolean)
RETURNS TABLE (id bytea, version smallint, state smallint, owner bytea, fingerprint bytea, attempt integer, fence bigint,
	lease_until timestamptz, valid_until timestamptz, clock timestamptz, size integer, payload bytea)
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
		IF $9 = (step = 1) THEN
			RETURN QUERY
				SELECT r.id, r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, now(),
					octet_length(r.payload), CASE WHEN octet_length(r.payload) <= 65536 THEN r.payload END
				FROM unnest($1) AS a (id) CROSS JOIN LATERAL (SELECT * FROM {records} AS r WHERE r.id = a.id) AS r;
		ELSE
			RETURN QUERY
				INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
					lease_until, valid_until, expires_at, created_at, label)
				SELECT a.id, 1, 1, 1, (date_part('epoch', a.at) * 1000000)::bigint, a.owner, a.fingerprint,
					a.at + a.lease, a.at + a.retention, a.at + a.purge, a.at, a.label
				FROM (
					SELECT *, clock_timestamp() AS at
					FROM (
						SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS a (id, owner, fingerprint, label, lock, lease, retention, purge)
						WHERE pg_try_advisory_xact_lock(a.lock # {records_literal}::regclass::oid::bigint)
						OFFSET 0
					) AS a
					OFFSET 0
				) AS a
				ON CONFLICT (id) DO NOTHING
				RETURNING r.id, NULL::smallint, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until,
					clock_timestamp(), NULL::integer, NULL::bytea;
		END IF;
		GET DIAGNOSTICS answered = ROW_COUNT;
		IF answered = cardinality($1) THEN
			RETURN;
		END IF;
	END LOOP;
END
$function$;

-- The completions of several attempts. Parameters, all of one length and in the order of the IDs, which differ: $1 ids, $2 owners, $3
-- payloads, $4 retentions. It answers those that it completed; complete_v2 says what became of another.
CREATE FUNCTION {completes}(bytea[], bytea[], bytea[], interval[]) RETURNS TABLE (id bytea, owner bytea)
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
			valid_until = clock_timestamp() + a.retention,
			-- indexed, so left alone where it still lies late enough
			expires_at = CASE WHEN r.expires_at < clock_timestamp() + a.retention
				THEN clock_timestamp() + a.retention ELSE r.expires_at END
		FROM unnest($1, $2, $3, $4) AS a (id, owner, payload, retention)
		WHERE r.id = a.id AND r.owner = a.owner AND {readable} AND r.state = 1
			AND (r.valid_until > clock_timestamp() OR r.lease_until > clock_timestamp())
		RETURNING r.id, r.owner;
END
$function$;

INSERT INTO {migrations} (version) VALUES (3);
