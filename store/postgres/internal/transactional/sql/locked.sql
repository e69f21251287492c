-- Locked: $1 the key of an attempt's lock. It fails with division_by_zero where the lock is taken.
SELECT 1 / pg_try_advisory_xact_lock($1::bigint)::integer
