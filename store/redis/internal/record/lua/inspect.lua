-- Inspect shows a record to an operator.
--
-- ARGV[1]: 'payload', or anything else to leave the payload out
if not unreadable and not seen then return 'N' end

expires = expires or redis.call('PEXPIRETIME', KEYS[1])
local left = -1 -- the key lasts for ever: somebody made it persist
if expires >= 0 then left = math.max((expires + 1) * 1000 - now, 0) end
if unreadable then return 'U' .. struct.pack('>i8I8', left, #(raw or '')) end

local claimed, completed, resolved = 0, 0, 0
local remaining, size = 0, 0
if began then
  remaining, left = math.min(lease - now, term), math.max(lease, valid) - now
  claimed = began
else
  size = length
  if expires >= 0 then completed = expires - math.max(1, math.ceil(retention / 1000) - 1) end
  claimed = math.floor((fence - 999) / 1000)
  if kind == COMPLETED_LATER then
    local _
    _, claimed, resolved = struct.unpack(RESOLVED, raw, payload_at - 11)
  end
  label = string.sub(raw, 68, 68 + string.byte(raw, 68))
end
local head = 'R' .. struct.pack('>BI4I8i8i8I8I8I8BI8', kind, attempt, fence, remaining, left, claimed, completed, now, resolved, size) .. label
if began or ARGV[1] ~= 'payload' then return head end
return head .. string.sub(raw, payload_at)
