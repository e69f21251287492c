-- What every script does last that forgets a record. A claim within the same millisecond
-- would be given the same fence again, so until that is over the fence stays behind.
if fence >= math.floor(now / 1000) * 1000 + 999 then
  redis.call('SET', KEYS[1], struct.pack('>BI8', FORGOTTEN, fence), 'PXAT', math.floor(fence / 1000) + 1)
  if KEYS[2] then redis.call('DEL', KEYS[2]) end
else
  redis.call('DEL', unpack(KEYS))
end
if watched then redis.pcall('SPUBLISH', KEYS[1], '') end -- as in complete.lua
return 'W'
