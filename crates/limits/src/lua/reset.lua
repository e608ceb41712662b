-- Empties a counter. The new epoch keeps charges made before from being given back after.
--
-- KEYS  1 the counter
-- ARGV  1 the time, empty for Redis's own; 2 kind, 3 length
-- Answer: what it held (whole part, billionths)

local now = clock(ARGV[1])
local counter = load(KEYS[1], {ARGV[2], tonumber(ARGV[3])}, now)
local held = used(counter)
if counter.stored then
  counter.buckets = {}
  counter.epoch = text(math.max(now, tonumber(counter.epoch) + 1))
  save(counter, now)
end
return {text(held[1]), text(held[2])}
