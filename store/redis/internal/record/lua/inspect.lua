-- Inspect shows a record to an operator.
--
-- ARGV[1]: 'payload', or anything else to leave the payload out
if not unreadable and not seen then return 'N' end

local payload -- where it is not the end of the record
if seen and length and kept > 0 and not expired then
  if not KEYS[2] then return 'K' end
  if ARGV[1] == 'payload' then
    payload = redis.call('GET', KEYS[2])
    expired, unreadable = not payload, payload and #payload ~= length
  else
    expired = redis.call('PEXPIRETIME', KEYS[2]) == -2
  end
end

local left = -1 -- the key lasts for ever: somebody made it persist
if expires >= 0 then left = math.max((expires + 1) * 1000 - now, 0) end
-- The state, the attempt, the fence, the rest of the lease, the validity, the milliseconds
-- of the claim and of the completion, now, whether an operator completed it, the size of
-- the payload and the retention; then the fingerprint, the policy, and a reason or a payload.
local VIEW = '>BI4I8i8i8I8I8I8BI8I8'
if unreadable then
  return 'R' .. struct.pack(VIEW, IS_UNREADABLE, 0, fence, 0, left, 0, 0, now, 0, #(raw or ''), 0) .. string.rep('\0', 32 + 1)
end

local state, remaining, size = IS_COMPLETED, 0, length
if began then
  remaining, left, size = math.min(lease - now, term), math.max(lease, valid) - now, 0
  claimed = began
  state = reason and IS_UNKNOWN or remaining > 0 and IS_RUNNING or IS_LAPSED
else
  if expired then state, size = IS_EXPIRED, 0 end
  claimed = claimed or math.floor((fence - 999) / 1000)
end
local head = 'R' .. struct.pack(VIEW, state, attempt, fence, remaining, left, claimed, completed or 0, now,
  kind == COMPLETED_RESOLVED and 1 or 0, size, retention) .. fingerprint .. policy .. (reason or '')
if state ~= IS_COMPLETED or ARGV[1] ~= 'payload' then return head end
return head .. (payload or string.sub(raw, payload_at))
