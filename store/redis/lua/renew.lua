-- Renew gives an attempt a new lease. It may exceed maxmemory: a lease that lapses is an operation that runs twice.
--
-- ARGV[1]: owner, lease µs
local owner, lease = struct.unpack('>c16I8', ARGV[1])

if not r or r.owner ~= owner then return 'L' end
if r.state == COMPLETED then return 'C' end

r.lease = now + lease
save()
return 'R'
