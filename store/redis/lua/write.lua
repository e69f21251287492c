-- What every script does last that changes a record: it writes the record and how long
-- the key lasts in one command, so that no error can part them.
local record
if payload then
  record = struct.pack(DONE, state, attempt, fence, valid, owner, fingerprint, #payload) .. payload
else
  record = struct.pack(STARTED, state, attempt, fence, valid, owner, fingerprint, lease)
end
local last = valid
if lease > last then last = lease end
redis.call('SET', KEYS[1], record, 'PX', math.ceil((last - now) / 1000) + SLACK)

-- Watchers look again when an attempt has ended. It is a hint: the record is written, so
-- a refusal must not fail the script.
if payload then redis.pcall('SPUBLISH', KEYS[1], '') end
return answer
