-- A payload that its record outlives is replayed while the clock and its key agree that
-- its retention runs: after a failover to another clock either may end first.
local completed, expired -- completed: the millisecond, of a key that expires
if length and not unreadable and expires >= 0 then
  completed = expires - math.max(1, math.ceil((replayed + kept) / 1000) - 1)
  expired = kept > 0 and now >= (completed + math.max(1, math.ceil(replayed / 1000) - 1) + 1) * 1000
end
