-- Claim decides who runs an operation, where a native claim could not. It carries no
-- flags: with memory full its SET is refused, and replays go on.
--
-- ARGV[1]: owner, fingerprint, lease µs, retention µs, flags, attempts at most (0: any
-- number), the length of the label, the label
local TAKEOVER, WAITING, VALIDITY = 1, 2, 4 -- the flags
local me, mine, lease_asked, retention_asked, flags, most = struct.unpack('>c16c32I8I8BI4', ARGV[1])

if seen and fingerprint ~= mine then return 'M' end
if seen and not began then
  if flags < VALIDITY then return raw end
  local left = -1 -- the key lasts for ever: somebody made it persist
  if expires >= 0 then left = math.max((expires + 1) * 1000 - now, 0) end
  return 'V' .. struct.pack('>i8', left) .. raw
end

local millisecond = math.floor(now / 1000)
if not seen then
  kind, attempt, began, label = CLAIMED, 1, millisecond, string.sub(ARGV[1], 70)
  local last = fence or 0
  fence = began * 1000 + 999
  if fence <= last then kind, fence = CLAIMED_LATER, last + 1 end
elseif lease > now then
  if owner ~= me then
    if flags % VALIDITY >= WAITING and kind == CLAIMED then
      -- The end of the attempt has to be published from now on. A server that refuses the
      -- write costs the caller a hint.
      redis.pcall('SET', KEYS[1], struct.pack(CLAIM, CLAIMED_LATER, owner, fingerprint, term, retention) ..
        struct.pack(LATER, attempt, fence) .. label, 'PXAT', expires)
    end
    return 'P' .. struct.pack('>i8', math.min(lease - now, term))
  end
elseif owner == me then
  return '=' .. struct.pack('>I4I8i8', attempt, fence, lease - now)
elseif flags % 2 ~= TAKEOVER or (most > 0 and attempt >= most) then
  return 'L'
else
  kind, attempt, began = CLAIMED_LATER, attempt + 1, millisecond
  fence = math.max(fence + 1, began * 1000 + 999)
  label = string.sub(ARGV[1], 70)
end

-- The claim is granted, maybe again. As in a native claim, its durations count from the
-- start of this millisecond.
local since = math.max(millisecond - began, 0) * 1000
owner, fingerprint, term, retention = me, mine, since + lease_asked, since + retention_asked
local answer = '+' .. struct.pack('>I4I8i8', attempt, fence, began * 1000 + term - now)
