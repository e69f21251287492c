-- Release forgets a claim.
--
-- ARGV[1]: owner
if not r or r.state ~= IN_PROGRESS or r.owner ~= ARGV[1] then return 'N' end

redis.call('DEL', KEYS[1])
redis.pcall('SPUBLISH', KEYS[1], '') -- as in complete.lua
return 'R'
