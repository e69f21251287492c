-- Inspect shows a record to an operator. A live record is seen beyond its retention,
-- until its lease ends.
--
-- ARGV[1]: 'payload', or anything else to leave the payload out
if not seen then return 'N' end

local left = 0
if state == IN_PROGRESS then left = lease - now end
local fixed = 'R' .. struct.pack('>BI4I8i8i8', state, attempt, fence, left, math.max(valid, lease) - now)
if state ~= COMPLETED or ARGV[1] ~= 'payload' then return fixed end
return fixed .. string.sub(raw, DONE_SIZE + 1)
