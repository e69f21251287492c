-- Renew gives an attempt a new lease. It may exceed maxmemory: a lease that lapses is an
-- operation that runs twice.
--
-- ARGV[1]: owner, lease µs
local me, term = struct.unpack('>c16I8', ARGV[1])

if not seen or owner ~= me then return 'X' end
if state == COMPLETED then return 'F' end

lease = now + term
local payload
local answer = 'W'
