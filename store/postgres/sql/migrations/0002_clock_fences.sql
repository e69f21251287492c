-- A fence comes from the server's clock in microseconds: after a crash a sequence hands out again what was drawn by transactions that
-- were never flushed. The sequence of version 1 stays, far behind, for releases that know no other schema.

-- A claim of the leased store, with the parameters and the answers of version 1.
--
-- It reads first and writes only what it may: a replay leaves no trace. A record that was not seen is inserted and never updated, and one
-- that was seen is updated and never inserted: its row may be deleted in between, and then no value computed from it is true.
--
-- A takeover locks the row first and passes over a row that is locked, so that it never waits for a transaction of somebody else.
CREATE OR REPLACE FUNCTION {claim}(bytea, bytea, bytea, boolean, integer, bigint, bigint,
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
				lease_until, valid_until, expires_at, created_at)
			VALUES ($1, 1, 1, 1, (extract(epoch FROM started) * 1000000)::bigint, $2, $3,
				started + lease, started + retention, started + retention + spare, started)
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
				created_at = CASE seen.verdict WHEN 'new' THEN started ELSE r.created_at END,
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

-- What the transactional store makes of the record that it finds, with the parameters and the answers of version 1.
CREATE OR REPLACE FUNCTION {attempt}(bytea, bytea, bytea, boolean, integer,
	OUT verdict text, OUT attempt integer, OUT fence bigint, OUT lease_left bigint, OUT payload bytea, OUT replaced bigint)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
	seen record;
BEGIN
	IF pg_is_in_recovery() THEN
		RAISE EXCEPTION 'a standby may be behind' USING ERRCODE = 'read_only_sql_transaction';
	END IF;
	SELECT r.*, {verdict} AS verdict INTO seen FROM {records} AS r WHERE r.id = $1;
	verdict := coalesce(seen.verdict, 'new');
	attempt := CASE verdict WHEN 'takeover' THEN seen.attempt + 1 ELSE 1 END;
	IF verdict IN ('new', 'takeover') THEN
		fence := greatest(seen.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
	ELSE
		fence := seen.fence;
	END IF;
	lease_left := coalesce((extract(epoch FROM seen.lease_until - now()) * 1000000)::bigint, 0);
	IF verdict = 'completed' THEN
		payload := seen.payload;
	END IF;
	replaced := CASE verdict WHEN 'takeover' THEN seen.fence ELSE 0 END;
END
$function$;

-- The first statement in the transaction of an attempt. Parameters: $1 the key of its lock, $2 the limit of its
-- transaction in milliseconds, $3 owner. It answers whether it got the lock.
--
-- It marks the transaction with the owner, so that keep_v2 finds out when the handler ended it. A timeout that the session
-- has already stays where it is stricter. The server looks after the client while a statement runs, where it can, so that the
-- lock of a process that died is free soon.
CREATE FUNCTION {open}(bigint, bigint, bytea) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
	name text;
	own  interval;
	most interval := $2 * interval '1 millisecond';
BEGIN
	IF NOT pg_try_advisory_xact_lock($1) THEN
		RETURN false;
	END IF;
	PERFORM set_config('reprise.attempt', encode($3, 'hex'), true);
	FOREACH name IN ARRAY ARRAY['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'] LOOP
		own := current_setting(name, true)::interval; -- NULL: a server older than the setting
		IF own = interval '0' OR own > most THEN
			PERFORM set_config(name, $2::text, true);
		END IF;
	END LOOP;
	own := current_setting('client_connection_check_interval', true)::interval;
	IF own = interval '0' OR own > interval '500 milliseconds' THEN
		BEGIN
			PERFORM set_config('client_connection_check_interval', '500', true);
		EXCEPTION WHEN invalid_parameter_value THEN
			NULL; -- the server's operating system cannot tell
		END;
	END IF;
	RETURN true;
END
$function$;

-- The completed record of an attempt goes in whole, as the last statement before COMMIT. Parameters: $1 id, $2 owner, $3 fingerprint,
-- $4 attempt, $5 fence, $6 payload, $7 retention in microseconds, $8 fence of the record taken over.
--
-- It fails when another record stands in the way, and in a transaction that is not the one that the attempt began: the
-- COMMIT that follows in the same batch must not happen then.
CREATE FUNCTION {keep}(bytea, bytea, bytea, integer, bigint, bytea, bigint, bigint) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
	IF current_setting('reprise.attempt', true) IS DISTINCT FROM encode($2, 'hex') THEN
		RAISE EXCEPTION 'not the transaction of the attempt' USING ERRCODE = 'RP002';
	END IF;
	INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint, payload,
		lease_until, valid_until, expires_at, created_at)
	SELECT $1, 1, 2, $4, $5, $2, $3, $6, t.at, t.valid, t.valid, t.at
	FROM (SELECT at, at + $7 * interval '1 microsecond' AS valid FROM clock_timestamp() AS c (at)) AS t
	ON CONFLICT (id) DO UPDATE SET
		state = 2,
		attempt = EXCLUDED.attempt,
		fence = EXCLUDED.fence,
		owner = EXCLUDED.owner,
		fingerprint = EXCLUDED.fingerprint,
		payload = EXCLUDED.payload,
		lease_until = EXCLUDED.lease_until,
		valid_until = EXCLUDED.valid_until,
		expires_at = EXCLUDED.expires_at,
		created_at = EXCLUDED.created_at
	WHERE {readable} AND (
		(r.valid_until <= clock_timestamp() AND NOT (r.state = 1 AND r.lease_until > clock_timestamp()))
		OR (r.state = 1 AND r.fence = $8 AND r.lease_until <= clock_timestamp()));
	IF NOT FOUND THEN
		RAISE EXCEPTION 'another attempt has the record' USING ERRCODE = 'RP001';
	END IF;
END
$function$;

INSERT INTO {migrations} (version) VALUES (2);
