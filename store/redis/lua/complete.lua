-- Complete keeps the payload of a finished attempt. It may exceed maxmemory: the operation has run, and an answer that is
-- not kept is an operation that runs twice.
--
-- ARGV[1]: owner, retention µs    ARGV[2]: payload
local owner, retention = struct.unpack('>c16I8', ARGV[1])

if not r or r.owner ~= owner then return 'L' end

if r.state == IN_PROGRESS then
  r.state, r.lease, r.valid = COMPLETED, 0, now + retention
  save(ARGV[2])
else
  -- A repetition writes what is there again: replication is confirmed only for what this connection wrote.
  save(string.sub(raw, HEAD_SIZE + LENGTH_SIZE + 1))
end

-- Watchers look again. It is a hint: the record is written, so a refusal must not fail the script.
redis.pcall('SPUBLISH', KEYS[1], '')
return 'D'
