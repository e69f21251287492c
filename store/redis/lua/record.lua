-- The layout of a record, version 1, and the steps that every script shares. It goes in front of each script.
--
-- A record is one string, so that one SET replaces all of it: big-endian numbers, and instants in microseconds of the
-- server's clock, in seven bytes (until the year 4253). The head is followed by the end of the lease, or, once completed, by the
-- length of the payload and the payload; so a record that was cut is noticed. Every byte counts: with 71 before the payload, an
-- answer of 256 bytes with its content type just fits into an allocation of 384.
local HEAD = '>BI4I7I7c16c32' -- version and state, attempt, fence, valid until, owner, fingerprint
local LEASE = '>I7'
local LENGTH = '>I4'
local HEAD_SIZE, LEASE_SIZE, LENGTH_SIZE = 67, 7, 4
local VERSION, IN_PROGRESS, COMPLETED = 1, 1, 2 -- version and state are one byte, sixteen times the version and the state

-- The key outlives its record by this many milliseconds: TIME is read after the instant from which PX counts.
local SLACK = 1000

local CORRUPT = '!'

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- load returns the record, nil when there is none, or nil and true when it cannot be read.
local function load()
  local s = redis.call('GET', KEYS[1])
  if not s then return nil end
  if #s < HEAD_SIZE + LENGTH_SIZE then return nil, true end
  local r, kind = { payload = '', lease = 0 }, nil
  kind, r.attempt, r.fence, r.valid, r.owner, r.fingerprint = struct.unpack(HEAD, s)
  r.state = kind - 16 * VERSION
  if r.state == IN_PROGRESS and #s == HEAD_SIZE + LEASE_SIZE then
    r.lease = struct.unpack(LEASE, s, HEAD_SIZE + 1)
  elseif r.state == COMPLETED and #s == HEAD_SIZE + LENGTH_SIZE + struct.unpack(LENGTH, s, HEAD_SIZE + 1) then
    r.payload = string.sub(s, HEAD_SIZE + LENGTH_SIZE + 1)
  else
    return nil, true
  end
  return r
end

-- live says that the record's owner holds a lease. At its end it has ended.
local function live(r, now) return r.state == IN_PROGRESS and r.lease > now end

-- seen says that the record counts; one that is not seen is as good as none.
local function seen(r, now) return r ~= nil and (r.valid > now or live(r, now)) end

-- save writes the record and how long the key lasts in one command, so that no error can part them.
local function save(r, now)
  local head = struct.pack(HEAD, 16 * VERSION + r.state, r.attempt, r.fence, r.valid, r.owner, r.fingerprint)
  local last, tail
  if r.state == IN_PROGRESS then
    last, tail = math.max(r.valid, r.lease), struct.pack(LEASE, r.lease)
  else
    last, tail = r.valid, struct.pack(LENGTH, #r.payload) .. r.payload
  end
  redis.call('SET', KEYS[1], head .. tail, 'PX', string.format('%.0f', math.ceil((last - now) / 1000) + SLACK))
end

-- announce tells watchers to look again. It is a hint: the record is written, so a refusal must not fail the script.
local function announce() redis.pcall('SPUBLISH', KEYS[1], '') end
