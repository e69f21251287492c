-- Inspect shows a record to an operator.
--
-- ARGV[1]: 'payload', or anything else to leave the payload out
if not r then return 'N' end

local lease = 0
if r.state == IN_PROGRESS then lease = r.lease - now end
local fixed = 'R' .. struct.pack('>BI4I8i8i8', r.state, r.attempt, r.fence, lease, r.valid - now)
if r.state ~= COMPLETED or ARGV[1] ~= 'payload' then return fixed end
return fixed .. string.sub(raw, HEAD_SIZE + LENGTH_SIZE + 1)
