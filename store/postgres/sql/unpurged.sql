-- Unpurged: for how many days the oldest of the records that a purge would change has been due; no row for less than a day.
SELECT ({clock} - r.due_at) / 86400000000
FROM {records} AS r
WHERE {purgeable} AND r.due_at <= {clock} - 86400000000
ORDER BY r.due_at
LIMIT 1
