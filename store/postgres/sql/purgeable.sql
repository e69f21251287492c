-- Whether the purge has something to do about the row r: to delete it, or to empty its payload. The clock is that of now(), because only a
-- stable function can be looked up in the index.
r.due_at <= {clock} AND CASE WHEN r.valid_until <= {clock} THEN NOT (r.state = 1 AND r.lease_until > {clock})
	ELSE r.version = 1 AND r.state = 2 AND r.payload IS NOT NULL AND r.replay_until <= {clock} END
