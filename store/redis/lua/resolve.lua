-- Resolve ends a lapsed record by the word of an operator, unless it is not the record that was looked at.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: payload
local fence, forget, retention = struct.unpack('>I8BI8', ARGV[1])

local now = clock()
local r, corrupt = load()
if corrupt then return CORRUPT end
if not seen(r, now) or r.state ~= IN_PROGRESS or live(r, now) or r.fence ~= fence then return 'N' end

if forget == 1 then
  redis.call('DEL', KEYS[1])
else
  -- Nobody owns it any more: a former owner that comes back learns that it lost, and answers what is kept here.
  r.state, r.valid, r.owner, r.payload = COMPLETED, now + retention, string.rep('\0', 16), ARGV[2]
  save(r, now)
end
announce()
return 'R'
