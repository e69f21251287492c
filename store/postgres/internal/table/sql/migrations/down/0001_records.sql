-- Every record goes with it.
DROP FUNCTION {claim}, {complete}, {claims}, {completes};

DROP TABLE {records}, {migrations};
