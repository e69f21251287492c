-- Every record goes with it.
DROP FUNCTION {claim}(bytea, bytea, bytea, boolean, integer, bigint, bigint);

DROP FUNCTION {complete}(bytea, bytea, bytea, bigint);

DROP FUNCTION {attempt}(bytea, bytea, bytea, boolean, integer);

DROP FUNCTION {keep_v1}(bytea, bytea, bytea, integer, bigint, bytea, bigint, bigint);

DROP TABLE {records};

DROP SEQUENCE {fence};

DROP TABLE {migrations};
