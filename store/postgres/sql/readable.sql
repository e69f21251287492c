-- Whether this release can read the row. What it cannot read it neither runs as new nor replays nor writes.
(version = 1 AND state IN (1, 2) AND octet_length(owner) = 16 AND octet_length(fingerprint) = 32
	AND (state = 2) = (payload IS NOT NULL))
