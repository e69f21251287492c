-- Uncommitted: $1 the instant at which a transaction began. It fails with division_by_zero where that was committed: see limits.sql.
SELECT 1 / (coalesce(current_setting('reprise.began', true), '') <> $1::bigint::text)::integer
