-- Claim decides who runs an operation. It carries no flags: with memory full its SET is refused, and replays go on.
--
-- ARGV[1]: owner, fingerprint, lease µs, retention µs, takeover 0 or 1, attempts at most (0: any number)
local owner, fingerprint, lease, retention, takeover, most = struct.unpack('>c16c32I8I8BI4', ARGV[1])

local now = clock()
local r, corrupt = load()
if corrupt then return CORRUPT end

-- granted answers with what is left of the lease, which is negative when it lapsed. '+' says that the claim was written.
local function granted(tag) return tag .. struct.pack('>I4I8i8', r.attempt, r.fence, r.lease - now) end

if seen(r, now) then
  if r.fingerprint ~= fingerprint then return 'M' end
  if r.state == COMPLETED then return 'C' .. r.payload end
  if live(r, now) then
    if r.owner ~= owner then return 'P' .. struct.pack('>i8', r.lease - now) end
  elseif r.owner == owner then
    return granted('=')
  else
    if takeover == 0 or (most > 0 and r.attempt >= most) then return 'L' end
    r.attempt, r.fence = r.attempt + 1, math.max(r.fence + 1, now)
  end
else
  r = { state = IN_PROGRESS, attempt = 1, fence = r and math.max(r.fence + 1, now) or now }
end

r.owner, r.fingerprint, r.lease, r.valid = owner, fingerprint, now + lease, now + retention
save(r, now)
return granted('+')
