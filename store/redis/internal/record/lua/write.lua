-- What every script does last that changes a claim: it writes the record and how long the
-- key lasts in one command, so that no error can part them. By the rule of record.lua the
-- expiry says when the attempt began. It cannot be in the past, which would delete the
-- record, so the shortest leases may be a millisecond longer.
local span = math.max(1, math.ceil(math.max(term, later + retention + horizon) / 1000) - 1)
if began + span <= math.floor(now / 1000) then
  span = math.floor(now / 1000) + 1 - began
  term = (span + 1) * 1000
end
local record = struct.pack(CLAIM, kind, owner, fingerprint, term, retention)
if kind ~= CLAIMED then record = record .. struct.pack(LATER, attempt, fence, later) end
redis.call('SET', KEYS[1], record .. policy .. (reason or ''), 'PXAT', began + span)
return answer
