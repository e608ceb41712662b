-- Reads an entry of an owner's map without letting it live longer.
--
-- KEYS  1 the owner's index, 2 the entry
-- Answer: the value, or nothing

return redis.call('GET', KEYS[2])
