-- Operators lose the labels. The checks come back for what is written from now on, and not for the rows that are there.
DROP FUNCTION {claims}(bytea[], bytea[], bytea[], text[], bigint[], interval[], interval[], interval[], boolean);

DROP FUNCTION {completes}(bytea[], bytea[], bytea[], interval[]);

DROP FUNCTION {claim_v2}(bytea, bytea, bytea, boolean, integer, bigint, bigint, text);

DROP FUNCTION {complete_v2}(bytea, bytea, bytea, bigint);

DO $migration$
DECLARE
	own text := current_setting('lock_timeout');
BEGIN
	PERFORM set_config('lock_timeout', '3s', true);
	ALTER TABLE {records} DROP COLUMN label,
		ADD CHECK (state IN (1, 2)) NOT VALID,
		ADD CHECK (octet_length(id) = 32) NOT VALID,
		ADD CHECK (octet_length(owner) = 16) NOT VALID,
		ADD CHECK (octet_length(fingerprint) = 32) NOT VALID,
		ADD CHECK ((state = 2) = (payload IS NOT NULL)) NOT VALID;
	PERFORM set_config('lock_timeout', own, true);
END
$migration$;

DELETE FROM {migrations} WHERE version = 3;
