if not seen or owner ~= string.sub(ARGV[1], 2) then return 'X' end

if not began then
  -- A repetition writes the record again: replication is confirmed only for what this
  -- connection wrote.
  redis.call('SET', KEYS[1], raw, 'KEEPTTL')
  return 'D'
end

local watched = kind == CLAIMED_LATER
kind = COMPLETED
local later = ''
if attempt > 1 or fence ~= began * 1000 + 999 then
  kind, later = COMPLETED_LATER, struct.pack(RESOLVED, attempt, began, 0)
end
local kept = struct.unpack('>I7', ARGV[2], 57) -- the retention
redis.call('SET', KEYS[1], struct.pack(DONE, kind, owner, fingerprint, fence, kept, #ARGV[4]) .. label .. later .. ARGV[4], 'PX', ARGV[3])

-- Watchers look again when an attempt has ended. It is a hint: the record is written, so
-- a refusal must not fail the script.
if watched then redis.pcall('SPUBLISH', KEYS[1], '') end
return 'D'
