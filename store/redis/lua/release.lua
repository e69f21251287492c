-- Release forgets a claim.
--
-- ARGV[1]: owner
local now = clock()
local r, corrupt = load()
if corrupt then return CORRUPT end
if not seen(r, now) or r.state ~= IN_PROGRESS or r.owner ~= ARGV[1] then return 'N' end

redis.call('DEL', KEYS[1])
announce()
return 'R'
