-- Claim decides who runs an operation. It carries no flags: with memory full its SET is refused, and replays go on.
--
-- ARGV[1]: owner, fingerprint, lease µs, retention µs, takeover 0 or 1, attempts at most (0: any number)
local owner, fingerprint, lease, retention, takeover, most = struct.unpack('>c16c32I8I8BI4', ARGV[1])

if not r then
  r = { state = IN_PROGRESS, attempt = 1, fence = math.max(last_fence + 1, now) }
elseif r.fingerprint ~= fingerprint then
  return 'M'
elseif r.state == COMPLETED then
  return raw
elseif r.lease > now then
  if r.owner ~= owner then return 'P' .. struct.pack('>i8', r.lease - now) end
elseif r.owner == owner then
  return '=' .. struct.pack('>I4I8i8', r.attempt, r.fence, r.lease - now)
elseif takeover == 0 or (most > 0 and r.attempt >= most) then
  return 'L'
else
  r.attempt, r.fence = r.attempt + 1, math.max(r.fence + 1, now)
end

-- The claim is granted, maybe again.
r.owner, r.fingerprint, r.lease, r.valid = owner, fingerprint, now + lease, now + retention
save()
return '+' .. struct.pack('>I4I8i8', r.attempt, r.fence, lease)
