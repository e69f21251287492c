-- The fence of the row r as operators see it. That of a record which cannot be read is the transaction that wrote it last, which changes
-- with every write.
CASE WHEN {readable} THEN r.fence ELSE r.xmin::text::bigint END
