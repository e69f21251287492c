-- Same: $1 the instant at which the transaction of an attempt began. It fails with division_by_zero in another transaction: the handler ended
-- its own. A transaction begins at the instant at which its first message arrived, and no other of the session begins in the same.
SELECT 1 / ({clock} = $1::bigint)::integer
