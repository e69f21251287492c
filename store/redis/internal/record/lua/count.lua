-- Count makes a step of a scan. It counts the records that are completed, and answers the
-- keys of the others, also of those that it cannot read, or that an operator completed:
-- inspect.lua decides about them. It reads the start of a record, which is the whole of
-- most, because one call costs more than a copy of some hundred bytes.
--
-- The answer is the next cursor, and pairs: nothing and a key, or a number of records
-- behind a text, which is 'C' or, if the payload has gone, 'E', and then the label.
--
-- ARGV: the cursor, a pattern for the keys, the size of the key of a record, and how many
-- keys a step has
local COMPLETED, COMPLETED_LATER = 0x23, 0x24 -- see record.lua
local START = 1024
local size = tonumber(ARGV[3])
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[4])
local counts, answer = {}, {found[1]}

for _, key in ipairs(found[2]) do
  if #key == size then
    local counted
    local raw = redis.pcall('GETRANGE', key, 0, START - 1)
    local kind = type(raw) == 'string' and string.byte(raw)
    if (kind == COMPLETED or kind == COMPLETED_LATER) and #raw >= 70 then
      local flags = string.byte(raw, 68)
      local label, at = flags % 64, 69
      local last = at + label - 1
      if label == 63 then
        label, at = string.byte(raw, 69), 71
        last = at + label + string.byte(raw, 70) - 1
      end
      if kind == COMPLETED_LATER then last = last + 10 end
      local state = 'C'
      if flags < 128 then
        last = last + struct.unpack('>I4', raw, 64)
      else
        last = last + 7
        if redis.call('PEXPIRETIME', key .. 'p') == -2 then state = 'E' end
      end
      -- The last byte is the end of the record.
      if #raw < START and #raw == last or #raw == START and #redis.call('GETRANGE', key, last - 1, last) == 1 then
        counted = state .. string.sub(raw, at, at + label - 1)
        counts[counted] = (counts[counted] or 0) + 1
      end
    end
    if not counted then answer[#answer + 1], answer[#answer + 2] = '', key end
  end
end

for counted, n in pairs(counts) do
  answer[#answer + 1], answer[#answer + 2] = counted, tostring(n)
end
return answer
