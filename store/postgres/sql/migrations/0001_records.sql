-- One row is one record. Instants and durations are in microseconds, instants since 1970. valid_until decides and, while state is 1,
-- lease_until. Neither has an index, so that a completion is a heap-only update; the purge looks for due_at, which is written at the claim
-- with room to spare.
--
-- There are no CHECK constraints: the server plans each of them anew for every statement that writes the table. Every reader refuses what
-- they would (see readable.sql).
--
-- The fill factor reserves 2 % of a page for updates. The server removes dead row versions from a page once less than 10 % of it are free;
-- with a larger reserve it would leave each page with a dead version for every record.
CREATE TABLE IF NOT EXISTS {records} (
	fence        bigint   NOT NULL, -- from the server's clock
	claimed_at   bigint   NOT NULL, -- the claim of the attempt that the record shows
	lease_until  bigint   NOT NULL, -- of a completed record: when it was completed
	replay_until bigint   NOT NULL,
	valid_until  bigint   NOT NULL,
	due_at       bigint   NOT NULL, -- when a purge looks at the row
	retention    bigint   NOT NULL, -- this, the next, at_most_once and label: the policy of the record
	horizon      bigint   NOT NULL,
	attempt      integer  NOT NULL,
	revision     integer  NOT NULL, -- raised by every write
	version      smallint NOT NULL, -- of the meaning of this row
	state        smallint NOT NULL, -- 1: in progress, 2: completed
	at_most_once smallint NOT NULL,
	id           bytea    NOT NULL PRIMARY KEY,
	owner        bytea    NOT NULL, -- zero: an operator completed the record; with its bits inverted: see reason
	fingerprint  bytea    NOT NULL,
	label        text     NOT NULL,
	description  text     NOT NULL,
	reason       text     NOT NULL, -- why the outcome is unknown; empty unless its owner said so
	payload      bytea              -- NULL once its replay has ended
) WITH (fillfactor = 98, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX ON {records} (due_at);

-- The names of the functions have a version. A release that needs other functions creates them beside these, so that a rolling deploy
-- runs both releases.

-- The claims of several callers, as far as they need no row to be rewritten. Parameters, all but the last of one length and in the order of
-- the IDs, which differ: $1 ids, $2 owners, $3 fingerprints, $4 leases, then the policies: $5 retentions, $6 horizons, $7 labels, $8 at most
-- once; $9 descriptions; $10 whether most of the IDs are expected to be there.
--
-- It returns the records that are there, for the caller to judge by the clock that comes with them, and those that it created, whose
-- version is NULL. A created record may be returned a second time, as one that is there. An ID that is not returned lost a race and is
-- claimed alone. A payload of more than 64 KiB is left out; size says that there is one.
--
-- Another transaction that is creating one of the records must not hold up the other calls: hence lock_timeout. Without the other settings
-- the server would plan anew for each number of IDs, or keep a plan that reads the whole table because it was small once.
CREATE OR REPLACE FUNCTION {claims}(bytea[], bytea[], bytea[], bigint[], bigint[], bigint[], text[], smallint[], text[], boolean)
RETURNS TABLE (id bytea, version smallint, state smallint, owner bytea, fingerprint bytea, attempt integer, fence bigint,
	lease_until bigint, valid_until bigint, clock bigint, at_most_once smallint, size integer, payload bytea)
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
				SELECT r.id, r.version, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until, {clock},
					r.at_most_once, octet_length(r.replayed), CASE WHEN octet_length(r.replayed) <= 65536 THEN r.replayed END
				FROM unnest($1) AS a (id) CROSS JOIN LATERAL (SELECT *, {replayed} AS replayed FROM {records} AS r WHERE r.id = a.id) AS r;
		ELSE
			RETURN QUERY
				INSERT INTO {records} AS r (id, owner, fingerprint, fence, claimed_at, lease_until, valid_until, due_at,
					retention, horizon, label, at_most_once, description, attempt, version, state, revision, replay_until, reason)
				SELECT a.id, a.owner, a.fingerprint, a.at, a.at, a.at + a.lease, a.at + a.kept, a.at + a.kept + least(a.kept, 3600000000),
					a.retention, a.horizon, a.label, a.at_most_once, a.description, 1, 1, 1, 1, 0, ''
				FROM (
					SELECT *, {late} AS at, retention + horizon AS kept
					FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
						AS a (id, owner, fingerprint, lease, retention, horizon, label, at_most_once, description)
					OFFSET 0
				) AS a
				ON CONFLICT (id) DO NOTHING
				RETURNING r.id, NULL::smallint, r.state, r.owner, r.fingerprint, r.attempt, r.fence, r.lease_until, r.valid_until,
					{late}, NULL::smallint, NULL::integer, NULL::bytea;
		END IF;
		GET DIAGNOSTICS answered = ROW_COUNT;
		IF answered = cardinality($1) THEN
			RETURN;
		END IF;
	END LOOP;
END
$function$;

-- The completions of several attempts. Parameters, all of one length and in the order of the IDs, which differ: $1 ids, $2 owners, $3
-- payloads, $4 retentions, $5 horizons. It returns the records that it completed; each of the others is completed alone.
CREATE OR REPLACE FUNCTION {completes}(bytea[], bytea[], bytea[], bigint[], bigint[]) RETURNS TABLE (id bytea, owner bytea)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '50ms'
AS $function$
#variable_conflict use_column
BEGIN
	RETURN QUERY
		UPDATE {records} AS r SET
			state = 2,
			revision = r.revision + 1,
			payload = a.payload,
			lease_until = {late},
			replay_until = {late} + a.retention,
			valid_until = {late} + a.retention + a.horizon,
			retention = a.retention,
			horizon = a.horizon,
			-- indexed, so left alone where it still lies late enough and no horizon follows
			due_at = CASE WHEN a.horizon > 0 OR r.due_at < {late} + a.retention THEN {late} + a.retention ELSE r.due_at END
		FROM unnest($1, $2, $3, $4, $5) AS a (id, owner, payload, retention, horizon)
		WHERE r.id = a.id AND r.owner = a.owner AND {readable} AND r.state = 1
			AND (r.valid_until > {late} OR r.lease_until > {late})
		RETURNING r.id, r.owner;
END
$function$;
