-- The layout of a record, version 1, and the steps that every script shares. It goes in front of each script.
--
-- A record is one string, so that one SET replaces all of it: big-endian numbers, instants in microseconds of the
-- server's clock, and the payload last. The length of the payload is part of it, so that a cut record is noticed.
local LAYOUT = '>BBI4I8I8I8c16c32I4' -- version, state, attempt, lease, valid, fence, owner, fingerprint, #payload
local FIXED = 82
local VERSION, IN_PROGRESS, COMPLETED = 1, 1, 2

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
  if #s < FIXED then return nil, true end
  local r, version, size = {}, nil, nil
  version, r.state, r.attempt, r.lease, r.valid, r.fence, r.owner, r.fingerprint, size = struct.unpack(LAYOUT, s)
  if version ~= VERSION or #s ~= FIXED + size then return nil, true end
  if r.state ~= COMPLETED and (r.state ~= IN_PROGRESS or size > 0) then return nil, true end
  r.payload = string.sub(s, FIXED + 1)
  return r
end

-- live says that the record's owner holds a lease. At its end it has ended.
local function live(r, now) return r.state == IN_PROGRESS and r.lease > now end

-- seen says that the record counts; one that is not seen is as good as none.
local function seen(r, now) return r ~= nil and (r.valid > now or live(r, now)) end

-- save writes the record and how long the key lasts in one command, so that no error can part them.
local function save(r, now)
  local last = r.valid
  if r.state == IN_PROGRESS and r.lease > last then last = r.lease end
  local fixed = struct.pack(LAYOUT, VERSION, r.state, r.attempt, r.lease, r.valid, r.fence, r.owner, r.fingerprint, #r.payload)
  redis.call('SET', KEYS[1], fixed .. r.payload, 'PX', string.format('%.0f', math.ceil((last - now) / 1000) + SLACK))
end

-- announce tells watchers to look again. It is a hint: the record is written, so a refusal must not fail the script.
local function announce() redis.pcall('SPUBLISH', KEYS[1], '') end
