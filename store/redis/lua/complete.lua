-- Complete keeps the payload of a finished attempt. It may exceed maxmemory: the
-- operation has run, and an answer that is not kept is an operation that runs twice.
--
-- ARGV[1]: owner, retention µs    ARGV[2]: payload
local me, retention = struct.unpack('>c16I8', ARGV[1])

if not seen or owner ~= me then return 'X' end

local answer = 'D'
local payload = ARGV[2]
if state == IN_PROGRESS then
  state, lease, valid = COMPLETED, 0, now + retention
else
  -- A repetition writes the record again: replication is confirmed only for what this
  -- connection wrote.
  payload = string.sub(raw, DONE_SIZE + 1)
end
