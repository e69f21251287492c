-- Claim, where the server parses each statement anew: it plans the call of a function faster than claim_new.sql, whose parameters and answer
-- these are, and looks first as that does. It answers nothing, too, where a transaction creates the record or its payload is larger than a batch has.
SELECT clock, version, state, owner, fingerprint, attempt, fence, lease_until, valid_until, at_most_once, payload
FROM {claims}(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::interval], array[$6::bigint], array[$7::bigint],
	array[$8::text], array[$9::boolean], array[$10::text], true)
WHERE payload IS NOT NULL OR size IS NULL
