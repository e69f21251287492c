-- Resolve ends a lapsed record by the word of an operator, unless it is not the record that was looked at.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: payload
local looked_at, forget, retention = struct.unpack('>I8BI8', ARGV[1])

if not seen or state ~= IN_PROGRESS or lease > now or fence ~= looked_at then return 'N' end

if forget == 1 then
  redis.call('DEL', KEYS[1])
  redis.pcall('SPUBLISH', KEYS[1], '') -- as in write.lua
  return 'R'
end

-- Nobody owns it any more: a former owner that comes back learns that it lost, and answers what is kept here.
state, lease, valid, owner = COMPLETED, 0, now + retention, string.rep('\0', 16)
local payload = ARGV[2]
local answer = 'R'
