if not seen or owner ~= string.sub(ARGV[1], 2) or reason then return 'X' end

if not began then
  -- A repetition writes the record again: replication is confirmed only for what this
  -- connection wrote, and for all that was written before.
  redis.call('SET', KEYS[1], raw, 'KEEPTTL')
  return 'D'
end

local watched = kind == CLAIMED_LATER
kind = COMPLETED
local between = ''
if attempt > 1 or fence ~= began * 1000 + 999 then
  kind, between = COMPLETED_LATER, struct.pack(DONE_LATER, attempt, began)
end
retention, length = struct.unpack('>I7', ARGV[2], 57), #payload
-- The label, the description and AtMostOnce stay those of the claim.
local flags = string.byte(policy) % 128
policy = string.sub(policy, 2, horizon > 0 and -8 or -1)
if KEYS[2] then
  redis.call('SET', KEYS[2], payload, 'PX', math.max(1, math.ceil(retention / 1000) - 1))
  payload, flags, policy = '', flags + 128, policy .. string.sub(ARGV[2], -7) -- the horizon
end
redis.call('SET', KEYS[1], struct.pack(DONE, kind, owner, fingerprint, fence, retention, length) ..
  string.char(flags) .. policy .. between .. payload, 'PX', ARGV[3])

-- Watchers look again when an attempt has ended. It is a hint: the record is written, so
-- a refusal must not fail the script.
if watched then redis.pcall('SPUBLISH', KEYS[1], '') end
return 'D'
