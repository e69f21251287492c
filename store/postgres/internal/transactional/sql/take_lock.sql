-- Take lock: $1 the key of an attempt's lock. It waits until that attempt has ended.
SELECT pg_advisory_xact_lock($1::bigint)
