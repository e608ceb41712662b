-- Reads an entry of an owner's map and lets it live on.
--
-- KEYS  1 the owner's index, 2 the entry
-- ARGV  1 the entry's name in the index; 2 milliseconds to live from now
-- Answer: the value, or nothing

local value = redis.call('GET', KEYS[2])
if not value then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return false
end
local time = redis.call('TIME')
local ends = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('ZADD', KEYS[1], string.format('%.0f', ends), ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last[2])))
return value
