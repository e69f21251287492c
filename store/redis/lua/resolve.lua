-- Resolve ends a lapsed record for an operator, unless the record has changed since the
-- operator looked at it.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: payload
local looked_at, forget, retention = struct.unpack('>I8BI8', ARGV[1])

if not seen or state ~= IN_PROGRESS or lease > now or fence ~= looked_at then return 'N' end

if forget == 1 then
  redis.call('DEL', KEYS[1])
  redis.pcall('SPUBLISH', KEYS[1], '') -- as in write.lua
  return 'W'
end

-- The record has no owner any more: a former owner that comes back learns that it lost,
-- and answers with what is kept here.
state, lease, valid, owner = COMPLETED, 0, now + retention, string.rep('\0', 16)
local payload = ARGV[2]
local answer = 'W'
