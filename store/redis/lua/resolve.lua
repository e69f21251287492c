-- Resolve ends a lapsed record by the word of an operator, unless it is not the record that was looked at.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: payload
local fence, forget, retention = struct.unpack('>I8BI8', ARGV[1])

if not r or r.state ~= IN_PROGRESS or r.lease > now or r.fence ~= fence then return 'N' end

if forget == 1 then
  redis.call('DEL', KEYS[1])
else
  -- Nobody owns it any more: a former owner that comes back learns that it lost, and answers what is kept here.
  r.state, r.lease, r.valid, r.owner = COMPLETED, 0, now + retention, string.rep('\0', 16)
  save(ARGV[2])
end
redis.pcall('SPUBLISH', KEYS[1], '') -- as in complete.lua
return 'R'
