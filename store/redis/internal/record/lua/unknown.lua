-- Unknown ends an attempt about whose effects nothing is known: its lease ends, and
-- operators are told why. It may exceed maxmemory: the operation has run, and what is not
-- marked may run twice.
--
-- ARGV[1]: owner    ARGV[2]: reason
if not seen or not began or owner ~= ARGV[1] then return 'X' end

if reason then
  redis.call('SET', KEYS[1], raw, 'KEEPTTL') -- as in complete.lua
  return 'W'
end
-- Those who wait look again. Nothing of a script is seen before its end.
if kind == CLAIMED_LATER then redis.pcall('SPUBLISH', KEYS[1], '') end
kind, reason = UNKNOWN, ARGV[2]
later = math.max(now - began * 1000, 0)
term = later
if string.byte(policy) % 128 < 64 then policy = string.char(string.byte(policy) + 64) .. string.sub(policy, 2) end
local answer = 'W'
