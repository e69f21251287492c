-- Resolve ends a record for an operator, unless it has changed since the operator looked
-- at it.
--
-- ARGV[1]: fence and state that the operator saw, whether to forget (1), retention µs
-- ARGV[2]: payload
local looked_at, state, forget, asked = struct.unpack('>I8BBI8', ARGV[1])

if fence ~= looked_at or not (seen or unreadable) then return 'N' end
if state == IS_LAPSED and reason then return 'N' end -- the operator did not see it
local completed_state = state == IS_COMPLETED or state == IS_EXPIRED
if seen and length and kept > 0 then
  if not KEYS[2] then return 'K' end
  local payload = not expired and redis.call('GET', KEYS[2])
  unreadable = payload and #payload ~= length -- as in inspect.lua
end
if unreadable then
  if state ~= IS_UNREADABLE then return 'N' end
  if not KEYS[2] then return 'K' end -- there may be a payload, too
elseif length then
  if not completed_state then return 'N' end
elseif completed_state or state == IS_UNREADABLE or lease > now then
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
