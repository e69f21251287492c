-- Unpurged: for how many days the oldest of the records that a purge would change has been due; no row for less than a day.
SELECT extract(epoch FROM now() - r.expires_at)::bigint / 86400
FROM {records} AS r
WHERE {purgeable} AND r.expires_at <= now() - interval '1 day'
ORDER BY r.expires_at
LIMIT 1
