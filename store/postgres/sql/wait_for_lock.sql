-- Wait for lock: $1 how long the statements of this transaction wait for a lock, unless the session has a stricter limit.
SELECT set_config('lock_timeout', $1::text, true)
FROM (SELECT current_setting('lock_timeout')::interval AS own) AS s
WHERE own = interval '0' OR own > $1::text::interval
