-- The payload of the row r, and NULL once its replay has ended. Where nothing is kept beyond the replay, expires_at lies at valid_until or
-- later.
CASE WHEN r.state <> 2 OR r.expires_at > now() THEN r.payload END
