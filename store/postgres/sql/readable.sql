-- Whether this release can read the row r. What it cannot read it neither runs as new nor replays nor writes. A completed row without a
-- payload is one whose replay has ended.
(r.version = 1 AND r.state IN (1, 2) AND octet_length(r.owner) = 16 AND octet_length(r.fingerprint) = 32
	AND (r.state = 2 OR r.payload IS NULL))
