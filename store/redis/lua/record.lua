-- The layout of a record, version 1, and what every script does first. It goes in front of each script.
--
-- A record is one string, so that one SET replaces all of it: big-endian numbers, and instants in microseconds of the
-- server's clock, in seven bytes (until the year 4253). The head is followed by the end of the lease, or, once completed, by the
-- length of the payload and the payload; so a record that was cut is noticed. Every byte counts: with 71 before the payload, an
-- answer of 256 bytes with its content type just fits into an allocation of 384.
local HEAD = '>BI4I7I7c16c32' -- version and state, attempt, fence, valid until, owner, fingerprint
local LEASE = '>I7'
local LENGTH = '>I4'
local HEAD_SIZE, LEASE_SIZE, LENGTH_SIZE = 67, 7, 4
local IN_PROGRESS, COMPLETED = 0x11, 0x12 -- the version in the high half of the byte, the state in the low one

-- The key outlives its record by this many milliseconds: TIME is read after the instant from which PX counts.
local SLACK = 1000

local CORRUPT = '!'

local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]

-- r is the record if it is seen: while it is valid or its lease runs. At its end it has ended. Of one that is not seen any more
-- only the fence counts. A completed record has no lease, which reads as one that ended long ago.
local r
local last_fence = 0
local raw = redis.call('GET', KEYS[1])
if raw then
  if #raw < HEAD_SIZE + LENGTH_SIZE then return CORRUPT end
  local state, attempt, fence, valid, owner, fingerprint = struct.unpack(HEAD, raw)
  local lease = 0
  if state == IN_PROGRESS and #raw == HEAD_SIZE + LEASE_SIZE then
    lease = struct.unpack(LEASE, raw, HEAD_SIZE + 1)
  elseif state ~= COMPLETED or #raw ~= HEAD_SIZE + LENGTH_SIZE + struct.unpack(LENGTH, raw, HEAD_SIZE + 1) then
    return CORRUPT
  end
  last_fence = fence
  if valid > now or lease > now then
    r = { state = state, attempt = attempt, fence = fence, valid = valid, owner = owner, fingerprint = fingerprint, lease = lease }
  end
end

-- save writes the record and how long the key lasts in one command, so that no error can part them.
local function save(payload)
  local head = struct.pack(HEAD, r.state, r.attempt, r.fence, r.valid, r.owner, r.fingerprint)
  local tail = payload and struct.pack(LENGTH, #payload) .. payload or struct.pack(LEASE, r.lease)
  redis.call('SET', KEYS[1], head .. tail, 'PX', math.ceil((math.max(r.valid, r.lease) - now) / 1000) + SLACK)
end
