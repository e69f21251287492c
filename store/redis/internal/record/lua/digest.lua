-- What the scripts for operators share. The states of a record, as package store numbers
-- them:
local IS_RUNNING, IS_LAPSED, IS_COMPLETED, IS_EXPIRED, IS_UNREADABLE, IS_UNKNOWN = 1, 2, 3, 4, 5, 6

-- The fence of a record that cannot be read is a digest, which changes whenever the record
-- does: operators forget what they saw, and not what an attempt of another release made of
-- it since. The digest covers 64 KiB, the length and the expiry, because a long one would
-- hold up the server. It has 48 bits, so it is lower than any fence.
if unreadable then
  expires = expires or redis.call('PEXPIRETIME', KEYS[1])
  local text = raw or ''
  local digest = redis.sha1hex(string.sub(text, 1, 65536) .. #text .. ':' .. string.format('%.0f', expires))
  fence = tonumber(string.sub(digest, 1, 12), 16) + 1
end
