-- Complete keeps the payload of a finished attempt. It may exceed maxmemory: the operation has run, and an answer that is
-- not kept is an operation that runs twice.
--
-- ARGV[1]: owner, retention µs    ARGV[2]: payload
local owner, retention = struct.unpack('>c16I8', ARGV[1])

local now = clock()
local r, corrupt = load()
if corrupt then return CORRUPT end
if not seen(r, now) or r.owner ~= owner then return 'L' end

-- A repetition writes what is there again, since replication is confirmed only for what this connection wrote.
if r.state == IN_PROGRESS then
  r.state, r.valid, r.payload = COMPLETED, now + retention, ARGV[2]
end
save(r, now)
announce()
return 'D'
