-- Resolve ends a lapsed record for an operator, unless the record has changed since the
-- operator looked at it. One that cannot be read has no fence, which is asked for as 0.
--
-- ARGV[1]: fence, forget 0 or 1, retention µs    ARGV[2]: payload
local looked_at, forget, asked = struct.unpack('>I8BI8', ARGV[1])

if unreadable then
  if forget == 0 or looked_at > 0 then return 'N' end
  if not KEYS[2] then return 'K' end -- there may be a payload, too
  fence = 0
elseif not seen or not began or lease > now or fence ~= looked_at then
  return 'N'
end

local watched = true
if forget == 0 then
  -- The record ends no earlier than it would have without the operator. Its durations
  -- count from the start of this millisecond.
  local millisecond = math.floor(now / 1000)
  kept = math.max(valid - millisecond * 1000 - asked, horizon)
  if kept > 0 and not KEYS[2] then return 'K' end
  -- It has no owner any more: an owner that comes back learns that it lost, and answers
  -- with what is kept here.
  local record = struct.pack(DONE, COMPLETED_RESOLVED, string.rep('\0', 16), fingerprint, fence, retention, #ARGV[2]) ..
    policy .. struct.pack(RESOLVED, attempt, began, asked, kept)
  if kept > 0 then
    redis.call('SET', KEYS[2], ARGV[2], 'PXAT', millisecond + math.max(1, math.ceil(asked / 1000) - 1))
  else
    record = record .. ARGV[2]
  end
  redis.call('SET', KEYS[1], record, 'PXAT', millisecond + math.max(1, math.ceil((asked + kept) / 1000) - 1))
  redis.pcall('SPUBLISH', KEYS[1], '') -- as in complete.lua
  return 'W'
end
