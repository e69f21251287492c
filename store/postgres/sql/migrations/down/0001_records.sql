-- Every record goes with it.
DROP FUNCTION {claims}, {completes};

DROP TABLE {records};
