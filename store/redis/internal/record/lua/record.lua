-- The layout of a record, and the first part of every script: it reads the record. The
-- decision comes next, and write.lua last where the script writes a claim. The parts are
-- no functions, and they hand over variables and no tables, because to make either costs
-- a call more than a microsecond.
--
-- A record is one string, so that one SET replaces all of it; numbers are big-endian. It
-- holds durations in microseconds and hardly an instant: a client writes a claim and a
-- completion without knowing the server's clock, and the expiry of the key says when that
-- was. Every byte of a completed record counts: with 68 before the payload, an answer of
-- 256 bytes with its content type just fits into an allocation of 384.
local CLAIM = '>Bc16c32I8I8' -- kind, owner, fingerprint, lease, retention; then the label
local LATER = '>I4I8' -- between them, where the kind says so: attempt, fence
local DONE = '>Bc16c32I7I7I4' -- kind, owner, fingerprint, fence, retention, length of the payload; then the label
local RESOLVED = '>I4I6B' -- then, where the kind says so: attempt, claimed at (ms), 1 if an operator completed it; then the payload

-- The version, 2, in the high half of the byte and the kind in the low one.
local CLAIMED = 0x21 -- by a first attempt; nobody watches
local CLAIMED_LATER = 0x22 -- by a later attempt, or somebody watches: its end is published
local COMPLETED = 0x23 -- by a first attempt
local COMPLETED_LATER = 0x24 -- by a later attempt or by an operator
local FORGOTTEN = 0x25 -- no record but its fence: see forget.lua

-- The record, once it was read.
local seen, unreadable = false, false
local kind, owner, fingerprint, term, retention, attempt, fence, label
local expires -- the last millisecond of the key
local began -- in progress: the millisecond of the claim
local lease, valid -- in progress: the ends of the lease and of the validity, in microseconds
local length, payload_at -- completed
local raw = redis.pcall('GET', KEYS[1])
if type(raw) == 'table' then
  if not string.find(raw.err, 'WRONGTYPE', 1, true) then return raw end
  unreadable, raw = true, false
elseif raw then
  expires = redis.call('PEXPIRETIME', KEYS[1])
  local size = #raw
  kind = string.byte(raw)
  unreadable = true
  if (kind == CLAIMED or kind == CLAIMED_LATER) and size >= 66 and expires >= 0 then
    local _
    _, owner, fingerprint, term, retention = struct.unpack(CLAIM, raw)
    local at = 66
    if kind == CLAIMED_LATER and size >= 78 then
      attempt, fence = struct.unpack(LATER, raw, 66)
      at = 78
    elseif kind == CLAIMED then
      attempt = 1
    end
    if attempt and size == at + string.byte(raw, at) then
      unreadable = false
      label = string.sub(raw, at)
      -- The key was set to expire this much after the claim: see claimSpan in layout.go.
      began = expires - math.max(1, math.ceil(math.max(term, retention) / 1000) - 1)
      fence = fence or began * 1000 + 999
      lease, valid = began * 1000 + term, began * 1000 + retention
    end
  elseif (kind == COMPLETED or kind == COMPLETED_LATER) and size >= 68 then
    local _
    _, owner, fingerprint, fence, retention, length = struct.unpack(DONE, raw)
    payload_at = 69 + string.byte(raw, 68)
    if kind == COMPLETED_LATER then payload_at = payload_at + 11 end
    if size == payload_at - 1 + length then
      unreadable = false
      attempt = 1
      if kind == COMPLETED_LATER then attempt = struct.unpack('>I4', raw, payload_at - 11) end
    end
  elseif kind == FORGOTTEN and size == 9 then
    unreadable = false
    fence = struct.unpack('>I8', raw, 2)
  end
end

local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]

-- A claim is seen while it is valid or its lease runs; at its end it has ended. Of one that
-- is not seen any more, which may be there for another millisecond, only the fence counts.
if length then
  seen = not unreadable
elseif began then
  seen = valid > now or lease > now
end
