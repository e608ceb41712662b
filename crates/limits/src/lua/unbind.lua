-- Takes an entry out of an owner's map.
--
-- KEYS  1 the owner's index, 2 the entry
-- ARGV  1 the entry's name in the index
-- Answer: 1 it was there, 0 it was not

redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('DEL', KEYS[2])
