-- Whether the purge has something to do about the row r: to delete it, or to empty its payload. now() and not clock_timestamp(): only a
-- stable function can be looked up in the index.
r.expires_at <= now() AND CASE WHEN r.valid_until <= now() THEN NOT (r.state = 1 AND r.lease_until > now())
	ELSE r.version = 1 AND r.state = 2 AND r.payload IS NOT NULL END
