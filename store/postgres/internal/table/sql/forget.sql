-- Forget: $1 id, $2 fence, $3 whether the record was completed when the operator saw it, NULL where it could not be read, $4 whether
-- it had lapsed without a reason. The state is compared, too: an attempt that lapsed may have completed since, or said that its outcome is
-- unknown, with the same fence.
DELETE FROM {records} AS r
WHERE id = $1::bytea AND {fence} = $2::bigint AND CASE WHEN {readable}
	THEN (state = 2) = $3::boolean AND (state = 2 OR lease_until <= clock_timestamp() AND NOT ($4::boolean AND reason IS NOT NULL)) AND valid_until > clock_timestamp()
	ELSE $3::boolean IS NULL END
RETURNING 'forgotten'
