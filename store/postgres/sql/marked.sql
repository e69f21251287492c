-- Marked: $1 the mark. It fails with division_by_zero unless the transaction is the one that the claim began.
SELECT 1 / (current_setting('reprise.attempt', true) IS NOT DISTINCT FROM $1::text)::integer
