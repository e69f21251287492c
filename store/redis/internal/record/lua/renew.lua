-- Renew gives an attempt a new lease. It may exceed maxmemory: a lease that lapses is an
-- operation that runs twice.
--
-- ARGV[1]: owner, lease µs
local me, lease_asked = struct.unpack('>c16I8', ARGV[1])

if not seen or owner ~= me or reason then return 'X' end
if not began then return 'F' end

term = math.max(now - began * 1000, 0) + lease_asked
local answer = 'W'
