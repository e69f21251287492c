-- Claim decides who runs an operation, where a native claim could not. It carries no
-- flags: with memory full its SET is refused, and replays go on.
--
-- ARGV[1]: owner, fingerprint, lease µs, retention µs, flags, attempts at most (0: any
-- number), the policy
local TAKEOVER, WAITING = 1, 2 -- the flags
local me, mine, lease_asked, retention_asked, flags, most = struct.unpack('>c16c32I8I8BI4', ARGV[1])

if seen and fingerprint ~= mine then return 'M' end
if seen and not began then
  if kept == 0 then return 'C' .. string.sub(raw, payload_at) end
  if expired then return 'E' end
  if not KEYS[2] then return 'K' end
  local payload = redis.call('GET', KEYS[2])
  if not payload then return 'E' end
  if #payload ~= length then return '!' end
  return 'C' .. payload
end

local millisecond = math.floor(now / 1000)
if not seen then
  kind, attempt, began, reason = CLAIMED, 1, millisecond, nil
  local last = fence or 0
  fence = began * 1000 + 999
  if fence <= last then kind, fence = CLAIMED_LATER, last + 1 end
elseif reason then
  return 'L'
elseif lease > now then
  if owner ~= me then
    if flags >= WAITING and kind == CLAIMED then
      -- The end of the attempt has to be published from now on. A server that refuses the
      -- write costs the caller a hint.
      redis.pcall('SET', KEYS[1], struct.pack(CLAIM, CLAIMED_LATER, owner, fingerprint, term, retention) ..
        struct.pack(LATER, attempt, fence, later) .. policy, 'PXAT', expires)
    end
    return 'P' .. struct.pack('>i8', math.min(lease - now, term))
  end
elseif owner == me then
  return '=' .. struct.pack('>I4I8i8', attempt, fence, lease - now)
elseif string.byte(policy) % 128 >= 64 or flags % 2 ~= TAKEOVER or (most > 0 and attempt >= most) then
  return 'L'
else
  kind, attempt, began = CLAIMED_LATER, attempt + 1, millisecond
  fence = math.max(fence + 1, began * 1000 + 999)
end

-- The claim is granted, maybe again. As in a native claim, its durations count from the
-- start of this millisecond.
later = math.max(millisecond - began, 0) * 1000
if later > 0 then kind = CLAIMED_LATER end
owner, fingerprint, term, retention = me, mine, later + lease_asked, retention_asked
policy = string.sub(ARGV[1], 70)
horizon = string.byte(policy) >= 128 and struct.unpack('>I7', policy, #policy - 6) or 0
local answer = '+' .. struct.pack('>I4I8i8', attempt, fence, began * 1000 + term - now)
