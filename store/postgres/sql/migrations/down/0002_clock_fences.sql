-- The functions as version 1 has them.
CREATE OR REPLACE FUNCTION {claim}(bytea, bytea, bytea, boolean, integer, bigint, bigint,
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

CREATE OR REPLACE FUNCTION {attempt}(bytea, bytea, bytea, boolean, integer,
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

DROP FUNCTION {open}(bigint, bigint, bytea);

DROP FUNCTION {keep}(bytea, bytea, bytea, integer, bigint, bytea, bigint, bigint);

-- Fences go on above those that the clock gave, also above those that it gives to claims until this transaction commits: hence the
-- minute. Let it pass before version 2 is applied again, whose fences come from the clock alone.
SELECT setval({fence_literal}, (extract(epoch FROM clock_timestamp() + interval '1 minute') * 1000000)::bigint);

DELETE FROM {migrations} WHERE version = 2;
