-- Complete keeps the payload of a finished attempt. It may exceed maxmemory: the operation
-- has run, and an answer that is not kept is an operation that runs twice.
--
-- KEYS[2]: where the payload goes, only if its record outlives it
-- ARGV[1]: the kind that a first attempt's record has that nobody watches, owner
-- ARGV[2]: the completed record up to its policy, as the client knows it
-- ARGV[3]: how long the key lasts, in milliseconds    ARGV[4]: payload
local payload = ARGV[4]

-- Nearly always the record is as the claim wrote it, and there is nothing to decide. Up to
-- its policy it is two bytes shorter than the completed one.
local claim = redis.call('GET', KEYS[1])
if claim and #claim == #ARGV[2] - 2 and string.byte(claim, 66) == string.byte(ARGV[2], 68) and string.sub(claim, 1, 17) == ARGV[1] then
  if KEYS[2] then
    redis.call('SET', KEYS[2], payload, 'PX', math.max(1, math.ceil(struct.unpack('>I7', ARGV[2], 57) / 1000) - 1))
    payload = ''
  end
  redis.call('SET', KEYS[1], ARGV[2] .. payload, 'PX', ARGV[3])
  return 'D'
end

