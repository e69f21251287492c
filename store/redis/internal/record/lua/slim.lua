-- Complete keeps the payload of a finished attempt. It may exceed maxmemory: the operation
-- has run, and an answer that is not kept is an operation that runs twice.
--
-- ARGV[1]: the kind that a first attempt's record has that nobody watches, owner
-- ARGV[2]: the completed record up to its label, as the client knows it
-- ARGV[3]: how long the key lasts, in milliseconds    ARGV[4]: payload
--
-- Nearly always the record is as the claim wrote it, and there is nothing to decide. Up to
-- its label it is two bytes shorter than the completed one.
local claim = redis.call('GET', KEYS[1])
if claim and #claim == #ARGV[2] - 2 and string.byte(claim, 66) == #ARGV[2] - 68 and string.sub(claim, 1, 17) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2] .. ARGV[4], 'PX', ARGV[3])
  return 'D'
end

