-- Resolve ends a lapsed record for an operator, unless the record has changed since the
-- operator looked at it. One that cannot be read has no fence, which is asked for as 0.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: how long the key lasts, in
-- milliseconds    ARGV[3]: payload
local looked_at, forget, kept = struct.unpack('>I8BI8', ARGV[1])

if unreadable then
  if forget == 0 or looked_at > 0 then return 'N' end
  fence = 0
elseif not seen or not began or lease > now or fence ~= looked_at then
  return 'N'
end

local watched = true
if forget == 0 then
  -- The record has no owner any more: an owner that comes back learns that it lost,
  -- and answers with what is kept here.
  redis.call('SET', KEYS[1], struct.pack(DONE, COMPLETED_LATER, string.rep('\0', 16), fingerprint, fence, kept, #ARGV[3]) ..
    label .. struct.pack(RESOLVED, attempt, began, 1) .. ARGV[3], 'PX', ARGV[2])
  redis.pcall('SPUBLISH', KEYS[1], '') -- as in complete.lua
  return 'W'
end
