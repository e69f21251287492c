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

-- The versions of this schema that were applied. The store refuses to start on one that it does not know.
CREATE TABLE {migrations} (
	version    integer     NOT NULL PRIMARY KEY,
	applied_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO {migrations} (version) VALUES (1);
