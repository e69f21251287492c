-- One row is one record. What decides is valid_until and, while state is 1, lease_until. Neither has an index, so that a
-- completion is a heap-only update; expires_at is what the purge looks for, and is written at claim with room to spare.
--
-- A page is left when 2 % of it are free: late enough that the server, which cleans a page of row versions that died when less than
-- 10 % are free, still gets to it. With more reserved it would leave each page with a dead version for every record.
CREATE TABLE {records} (
	lease_until timestamptz NOT NULL,
	valid_until timestamptz NOT NULL,
	expires_at  timestamptz NOT NULL,
	created_at  timestamptz NOT NULL,
	fence       bigint      NOT NULL,
	attempt     integer     NOT NULL,
	state       smallint    NOT NULL CHECK (state IN (1, 2)), -- 1: in progress, 2: completed
	version     smallint    NOT NULL,                         -- of the meaning of this row
	id          bytea       NOT NULL PRIMARY KEY CHECK (octet_length(id) = 32),
	owner       bytea       NOT NULL CHECK (octet_length(owner) = 16),
	fingerprint bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
	payload     bytea,
	CHECK ((state = 2) = (payload IS NOT NULL))
) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX {expiry_index} ON {records} (expires_at);

CREATE SEQUENCE {fence};

-- What every request does is in functions, for the sake of speed: the server keeps the plans of their statements in each session, however
-- a call is sent and whatever pooler is between. Another release that needs other functions creates them beside these.

-- A claim of the leased store. Parameters: $1 id, $2 owner, $3 fingerprint, $4 takeover allowed, $5 attempts
-- allowed (0: any number), $6 lease, $7 retention, both in microseconds.
--
-- It reads first and writes only what it may: a replay leaves no trace. Every value of the new row is computed from the row that was
-- read, so the write is refused when that row changed meanwhile, and all begins anew. Each statement in here has a
-- snapshot of its own; where the session's isolation is stricter, a race fails instead and the caller repeats.
CREATE FUNCTION {claim}(bytea, bytea, bytea, boolean, integer, bigint, bigint,
	OUT verdict text, OUT attempt integer, OUT fence bigint, OUT lease_left bigint, OUT payload bytea)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
	lease     interval := $6 * interval '1 microsecond';
	retention interval := $7 * interval '1 microsecond';
	seen      record;
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

		INSERT INTO {records} AS r (id, version, state, attempt, fence, owner, fingerprint,
			lease_until, valid_until, expires_at, created_at)
		SELECT $1, 1, 1,
			CASE seen.verdict WHEN 'again' THEN seen.attempt WHEN 'takeover' THEN seen.attempt + 1 ELSE 1 END,
			CASE seen.verdict WHEN 'again' THEN seen.fence ELSE greatest(seen.fence + 1, nextval({fence_literal})) END,
			$2, $3,
			t.at + lease,
			t.at + retention,
			t.at + retention + least(retention, interval '1 hour'),
			CASE WHEN seen.verdict IN ('again', 'takeover') THEN seen.created_at ELSE t.at END
		FROM (SELECT clock_timestamp() AS at) AS t
		ON CONFLICT (id) DO UPDATE SET
			state = 1,
			attempt = EXCLUDED.attempt,
			fence = EXCLUDED.fence,
			owner = EXCLUDED.owner,
			fingerprint = EXCLUDED.fingerprint,
			payload = NULL,
			created_at = EXCLUDED.created_at,
			-- from the clock as it is now: EXCLUDED was computed before the wait for the row
			lease_until = clock_timestamp() + lease,
			valid_until = clock_timestamp() + retention,
			-- indexed, so left alone where it still lies late enough
			expires_at = CASE WHEN r.expires_at >= EXCLUDED.valid_until THEN r.expires_at ELSE EXCLUDED.expires_at END
		WHERE (r.fence, r.state, r.lease_until) = (seen.fence, seen.state, seen.lease_until)
		RETURNING r.attempt, r.fence, (extract(epoch FROM r.lease_until - clock_timestamp()) * 1000000)::bigint
		INTO attempt, fence, lease_left;
		IF FOUND THEN
			verdict := 'claimed';
			RETURN;
		END IF;
	END LOOP;
	verdict := 'lost race';
END
$function$;

-- A completion of the leased store. Parameters: $1 id, $2 owner, $3 payload, $4 retention in microseconds.
--
-- A repetition by the owner that completed the record changes nothing of it and still writes it: the answer to a commit is what
-- confirms replication, and the first one may have been lost.
CREATE FUNCTION {complete}(bytea, bytea, bytea, bigint) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
	retention interval := $4 * interval '1 microsecond';
BEGIN
	UPDATE {records} AS r SET
		state = 2,
		payload = CASE r.state WHEN 1 THEN $3 ELSE r.payload END,
		valid_until = CASE r.state WHEN 1 THEN clock_timestamp() + retention ELSE r.valid_until END,
		-- indexed, so left alone where it still lies late enough
		expires_at = CASE WHEN r.state = 1 AND r.expires_at < clock_timestamp() + retention
			THEN clock_timestamp() + retention ELSE r.expires_at END
	WHERE r.id = $1 AND r.owner = $2 AND {readable}
		AND (r.valid_until > clock_timestamp() OR (r.state = 1 AND r.lease_until > clock_timestamp()));
	RETURN FOUND;
END
$function$;

-- What the transactional store makes of the record that it finds, under the lock of the attempt. Parameters: $1 id, $2 owner, $3
-- fingerprint, $4 takeover allowed, $5 attempts allowed. It answers whether there is a record or not; replaced is the fence of
-- the lapsed record that the attempt takes over, or 0.
CREATE FUNCTION {attempt}(bytea, bytea, bytea, boolean, integer,
	OUT verdict text, OUT attempt integer, OUT fence bigint, OUT lease_left bigint, OUT payload bytea, OUT replaced bigint)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
	seen record;
BEGIN
	SELECT r.*, {verdict} AS verdict INTO seen FROM {records} AS r WHERE r.id = $1;
	verdict := coalesce(seen.verdict, 'new');
	attempt := CASE verdict WHEN 'takeover' THEN seen.attempt + 1 ELSE 1 END;
	IF verdict IN ('new', 'takeover') THEN
		fence := greatest(seen.fence + 1, nextval({fence_literal}));
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

-- The completed record of an attempt goes in whole, as the last statement before COMMIT. Parameters: $1 id, $2 owner, $3 fingerprint,
-- $4 attempt, $5 fence, $6 payload, $7 retention in microseconds, $8 fence of the record taken over.
--
-- It fails when another record stands in the way: the COMMIT that follows in the same batch must not happen then.
CREATE FUNCTION {keep_v1}(bytea, bytea, bytea, integer, bigint, bytea, bigint, bigint) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
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

-- The versions of this schema that were applied. The store refuses to start on one that it does not know.
CREATE TABLE {migrations} (
	version    integer     NOT NULL PRIMARY KEY,
	applied_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO {migrations} (version) VALUES (1);
