-- Gives a reservation's charges back, once. An id that was never charged becomes void, so that a
-- reserve that comes late charges nothing.
--
-- KEYS  1 the reservation, then its counters
-- ARGV  1 the time, empty for Redis's own; 2 milliseconds to remember that it is void;
--       then two for each counter (kind, length)

local now = clock(ARGV[1])
local charges = charges_of(redis.call('GET', KEYS[1])) or {}
for i = 2, #KEYS do
  local charged = charges[KEYS[i]]
  if charged then
    local at = 2 * i - 1
    local counter = load(KEYS[i], {ARGV[at], tonumber(ARGV[at + 1])}, now)
    take_back(counter, charged)
    save(counter, now)
  end
end
redis.call('SET', KEYS[1], 'void', 'PX', ARGV[2])
return {'done'}
