-- Claim decides who runs an operation. It carries no flags: with memory full its SET is
-- refused, and replays go on.
--
-- ARGV[1]: owner, fingerprint, lease µs, retention µs, takeover 0 or 1, attempts at most (0: any
-- number); with one byte more, a large record is not replayed but answered 'B'
local LARGE = 16384 -- bytes
local me, mine = struct.unpack('>c16c32', ARGV[1])

if seen and fingerprint ~= mine then return 'M' end
if seen and state == COMPLETED then
  if #raw > LARGE and #ARGV[1] > 69 then return 'B' end
  return raw
end

local term, retention, takeover, most = struct.unpack('>I8I8BI4', ARGV[1], 49)

if not seen then
  state, attempt, fence = IN_PROGRESS, 1, math.max((fence or 0) + 1, now)
elseif lease > now then
  if owner ~= me then return 'P' .. struct.pack('>i8', lease - now) end
elseif owner == me then
  return '=' .. struct.pack('>I4I8i8', attempt, fence, lease - now)
elseif takeover == 0 or (most > 0 and attempt >= most) then
  return 'L'
else
  attempt, fence = attempt + 1, math.max(fence + 1, now)
end

-- The claim is granted, maybe again.
owner, fingerprint, lease, valid = me, mine, now + term, now + retention
local payload
local answer = '+' .. struct.pack('>I4I8i8', attempt, fence, term)
