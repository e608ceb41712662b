-- Puts an entry in an owner's map; where the owner has as many as allowed, the entries that were not used
-- for longest make room.
--
-- KEYS  1 the owner's index (member = entry, score = when it ends, in ms), 2 the entry
-- ARGV  1 the entry's name in the index; 2 its value; 3 milliseconds to live; 4 how many an owner may have;
--       5 what the keys of the owner's entries begin with
-- Answer: name and value of each entry that made room

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local gone = {}
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[4])
  if over >= 0 then
    for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, over)) do
      local entry = ARGV[5] .. name
      local value = redis.call('GET', entry)
      redis.call('DEL', entry)
      redis.call('ZREM', KEYS[1], name)
      if value then
        gone[#gone + 1] = name
        gone[#gone + 1] = value
      end
    end
  end
end
local ends = now + tonumber(ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[1], string.format('%.0f', ends), ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last[2])))
return gone
