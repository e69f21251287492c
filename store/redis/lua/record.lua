-- The layout of a record, version 1, and what every script does first: it reads the
-- record. What it decides comes next, and write.lua last where it writes. These are parts
-- of one script and not functions, and what they hand over is in variables and not in
-- tables, because making either costs a call more than a microsecond.
--
-- A record is one string, so that one SET replaces all of it: big-endian numbers, and
-- instants in microseconds of the server's clock, in seven bytes (until the year 4253).
-- The head is followed by the end of the lease, or, once completed, by the length of the
-- payload and the payload; so a record that was cut is noticed. Every byte counts: with
-- 71 before the payload, an answer of 256 bytes with its content type just fits into an
-- allocation of 384.
local STARTED = '>BI4I7I7c16c32I7' -- version and state, attempt, fence, valid until, owner, fingerprint, end of the lease
local DONE = '>BI4I7I7c16c32I4' -- the same, and the length of the payload that follows
local STARTED_SIZE, DONE_SIZE = 74, 71
local IN_PROGRESS, COMPLETED = 0x11, 0x12 -- the version in the high half of the byte, the state in the low one

-- The key outlives its record by this many milliseconds: TIME is read after the instant
-- from which PX counts.
local SLACK = 1000

local CORRUPT = '!'

local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]

-- The record is seen while it is valid or its lease runs; at its end it has ended. Of one
-- that is not seen any more only the fence counts. A completed record has no lease, which
-- reads as one that ended long ago.
local seen = false
local state, attempt, fence, valid, owner, fingerprint
local lease = 0
local raw = redis.call('GET', KEYS[1])
if raw then
  local size, length = #raw
  if size < DONE_SIZE then return CORRUPT end
  state, attempt, fence, valid, owner, fingerprint, length = struct.unpack(DONE, raw)
  if state == IN_PROGRESS and size == STARTED_SIZE then
    lease = struct.unpack('>I7', raw, STARTED_SIZE - 6)
  elseif state ~= COMPLETED or size ~= DONE_SIZE + length then
    return CORRUPT
  end
  seen = valid > now or lease > now
end
