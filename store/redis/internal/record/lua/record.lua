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
--
-- The payload of a record that outlives it is the value of KEYS[2], which expires when the
-- retention ends: nothing but an expiry deletes on time. Any other payload is the end of
-- the record. Only a call that concerns such a payload names that key: while a cluster
-- moves a slot, it refuses a call that names a key which is not there besides one that is.
-- A script that finds out that it needs the key answers 'K', and is called again.
local CLAIM = '>Bc16c32I8I8' -- kind, owner, fingerprint, lease, retention; then the policy
local LATER = '>I4I8I8' -- between them, where the kind says so: attempt, fence, how much later its validity started
local DONE = '>Bc16c32I7I7I4' -- kind, owner, fingerprint, fence, retention, length of the payload; then the policy
local DONE_LATER = '>I4I6' -- then, where the kind says so: attempt, claimed at (ms); then the payload
local RESOLVED = '>I4I6I8I8' -- the same, and how long the payload is replayed, and the record kept after it
-- The policy: the length of the label, plus 64 if it is AtMostOnce and 128 if it has a
-- horizon; the label; the horizon in seven bytes. With a description: 63 in the place of
-- the length; the lengths of the label and of the description, a byte each; both; the
-- horizon.

-- The version, 2, in the high half of the byte and the kind in the low one.
local CLAIMED = 0x21 -- by a first attempt; nobody watches
local CLAIMED_LATER = 0x22 -- by a later attempt, or again, or somebody watches: its end is published
local COMPLETED = 0x23 -- by a first attempt
local COMPLETED_LATER = 0x24 -- by a later attempt
local FORGOTTEN = 0x25 -- no record but its fence: see forget.lua
local UNKNOWN = 0x27 -- as CLAIMED_LATER, and behind its policy the reason: its attempt ended without saying how
local COMPLETED_RESOLVED = 0x26 -- by an operator, who decides how long; the retention is that of the policy

-- The record, once it was read.
local seen, unreadable = false, false
local kind, owner, fingerprint, term, retention, horizon, attempt, fence, policy, later
local expires -- the last millisecond of the key
local began -- in progress: the millisecond of the claim
local reason -- in progress: why the outcome is unknown, if its owner said so
local lease, valid -- in progress: the ends of the lease and of the validity, in microseconds
local length, payload_at, claimed -- completed; claimed only if it is not that of the fence
local replayed, kept -- completed: how long the payload is replayed, and the record kept after it
local raw = redis.pcall('GET', KEYS[1])
if type(raw) == 'table' then
  if not string.find(raw.err, 'WRONGTYPE', 1, true) then return raw end
  unreadable, raw = true, false
elseif raw then
  expires = redis.call('PEXPIRETIME', KEYS[1])
  local size = #raw
  kind = string.byte(raw)
  unreadable = true
  local at -- the policy
  if kind == CLAIMED and size >= 66 and expires >= 0 then
    at, attempt, later = 66, 1, 0
  elseif (kind == CLAIMED_LATER or kind == UNKNOWN) and size >= 86 and expires >= 0 then
    at = 86
    attempt, fence, later = struct.unpack(LATER, raw, 66)
  elseif (kind == COMPLETED or kind == COMPLETED_LATER or kind == COMPLETED_RESOLVED) and size >= 68 then
    at = 68
  elseif kind == FORGOTTEN and size == 9 then
    unreadable = false
    fence = struct.unpack('>I8', raw, 2)
  end
  local rest
  if at then
    local flags = string.byte(raw, at)
    rest = at + 1 + flags % 64
    if flags % 64 == 63 then rest = at + 3 + (string.byte(raw, at + 1) or 0) + (string.byte(raw, at + 2) or 0) end
    if flags >= 128 then rest = rest + 7 end
    if size >= rest - 1 then
      policy = string.sub(raw, at, rest - 1)
      horizon = flags >= 128 and struct.unpack('>I7', raw, rest - 7) or 0
    end
  end
  local _
  if policy and at ~= 68 then
    if kind == UNKNOWN then reason = string.sub(raw, rest) end
    if size == rest - 1 + #(reason or '') and reason ~= '' then
      unreadable = false
      _, owner, fingerprint, term, retention = struct.unpack(CLAIM, raw)
      -- The key was set to expire this much after the claim: see claimSpan in layout.go.
      began = expires - math.max(1, math.ceil(math.max(term, later + retention + horizon) / 1000) - 1)
      fence = fence or began * 1000 + 999
      lease, valid = began * 1000 + term, began * 1000 + later + retention + horizon
    end
  elseif policy then
    _, owner, fingerprint, fence, retention, length = struct.unpack(DONE, raw)
    payload_at, attempt, replayed, kept = rest, 1, retention, horizon
    if kind == COMPLETED_LATER and size >= rest + 9 then
      payload_at = rest + 10
      attempt, claimed = struct.unpack(DONE_LATER, raw, rest)
    elseif kind == COMPLETED_RESOLVED and size >= rest + 25 then
      payload_at = rest + 26
      attempt, claimed, replayed, kept = struct.unpack(RESOLVED, raw, rest)
    elseif kind ~= COMPLETED then
      payload_at = size + 2 -- cut off
    end
    unreadable = size ~= payload_at - 1 + (kept > 0 and 0 or length)
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
