-- Puts an entry in an owner's map, unless the owner has as many as allowed.
--
-- KEYS  1 the owner's index (member = entry, score = when it ends, in ms), 2 the entry
-- ARGV  1 the entry's name in the index; 2 its value; 3 milliseconds to live; 4 how many an owner may have
-- Answer: 1 put, 0 full

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return 0
end
local ends = now + tonumber(ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[1], string.format('%.0f', ends), ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last[2])))
return 1
