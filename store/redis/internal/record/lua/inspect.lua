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
if unreadable then return 'U' .. struct.pack('>i8I8I8', left, #(raw or ''), fence) end

local state, remaining, size = 'P', 0, 0
if began then
  remaining, left = math.min(lease - now, term), math.max(lease, valid) - now
  claimed = began
  if reason then state = 'L' end
else
  state, size = 'C', length
  if expired then state, size = 'E', 0 end
  claimed = claimed or math.floor((fence - 999) / 1000)
end
local head = 'R' .. state .. struct.pack('>I4I8i8i8I8I8I8BI8I8', attempt, fence, remaining, left, claimed, completed or 0, now,
  kind == COMPLETED_RESOLVED and 1 or 0, size, retention) .. fingerprint .. policy .. (reason or '')
if state ~= 'C' or ARGV[1] ~= 'payload' then return head end
return head .. (payload or string.sub(raw, payload_at))
