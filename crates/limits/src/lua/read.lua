-- What counters hold, as it is stored: `buckets.rs` reads it. Changes nothing.
--
-- KEYS  the counters
-- ARGV  1 the time, empty for Redis's own
-- Answer: the time, then for each counter its text, or nothing

local answer = redis.call('MGET', unpack(KEYS))
table.insert(answer, 1, text(clock(ARGV[1])))
return answer
