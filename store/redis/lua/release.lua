-- Release forgets a claim.
--
-- ARGV[1]: owner
if not seen or state ~= IN_PROGRESS or owner ~= ARGV[1] then return 'N' end

redis.call('DEL', KEYS[1])
redis.pcall('SPUBLISH', KEYS[1], '') -- as in write.lua
return 'W'
