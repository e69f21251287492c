-- The payload of the row r, and NULL once its replay has ended.
CASE WHEN r.state <> 2 OR r.replay_until > {clock} THEN r.payload END
