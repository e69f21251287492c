-- Wait for claim: $1 the first eight bytes of the id. Whoever begins an attempt on the id holds this lock until it has committed (see
-- claim_new.sql), so a statement after this one sees the record of every claim that had the lock before.
SELECT pg_advisory_xact_lock($1::bigint # {records_literal}::regclass::oid::bigint)
