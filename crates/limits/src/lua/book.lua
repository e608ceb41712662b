-- Charges all counters of a call, or none; gives an older reservation back in the same step.
--
-- KEYS  1 the reservation, 2 the older reservation (or the same key: there is none),
--       then the counters to charge, then the counters that only the older one charged;
--       last, where there is a session, its grant's index of sessions
-- ARGV  1 the time, empty for Redis's own; 2 milliseconds to remember the reservation;
--       3 milliseconds to remember it at least; 4 how many counters to charge;
--       5 the session whose counters are charged, or nothing;
--       then six for each counter to charge (see `ask`), then two for each other one (kind, length)
-- Answer: `granted`, `refused` or `void`, then four for each counter to charge (see `tell`)

local now, keep, least, count = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local asks, counters, answer = {}, {}, {}
local session, last_counter = ARGV[5], ARGV[5] == '' and #KEYS or #KEYS - 1
for i = 1, count do
  asks[i] = ask(6 * i)
  counters[i] = load(KEYS[2 + i], asks[i].span, now)
end

local known = redis.call('GET', KEYS[1])
if known then
  answer[1] = known == 'void' and 'void' or 'granted'
  for i = 1, count do tell(answer, counters[i], asks[i].max, NOTHING, now) end
  if redis.call('PTTL', KEYS[1]) == -1 then redis.call('PEXPIRE', KEYS[1], text(keep)) end
  return answer
end

local others = {}
local given_back = KEYS[1] ~= KEYS[2] and charges_of(redis.call('GET', KEYS[2])) or {}
for i = 1, count do
  local charged = given_back[KEYS[2 + i]]
  if charged then take_back(counters[i], charged) end
end
for i = 3 + count, last_counter do
  local charged, at = given_back[KEYS[i]], 6 + 6 * count + 2 * (i - 3 - count)
  if charged then
    local counter = load(KEYS[i], {ARGV[at], tonumber(ARGV[at + 1])}, now)
    take_back(counter, charged)
    others[#others + 1] = counter
  end
end

local fits = true
for i = 1, count do
  fits = fits and at_most(add(used(counters[i]), asks[i].amount), asks[i].max)
end
if not fits then
  answer[1] = 'refused'
  for i = 1, count do
    tell(answer, counters[i], asks[i].max, asks[i].amount, now)
    heal(load(KEYS[2 + i], asks[i].span, now), now)
  end
  return answer
end

answer[1] = 'granted'
local lines, longest = {}, 0
for i = 1, count do
  local counter, amount = counters[i], asks[i].amount
  local bucket = bucket_of(counter.span, now)
  charge(counter, bucket, amount)
  longest = math.max(longest, save(counter, now))
  lines[i] = counter.epoch .. ' ' .. text(bucket) .. ' ' .. text(amount[1]) .. ' ' .. text(amount[2]) .. ' ' .. KEYS[2 + i]
  tell(answer, counter, asks[i].max, NOTHING, now)
end
for _, counter in ipairs(others) do save(counter, now) end
if KEYS[1] ~= KEYS[2] then redis.call('SET', KEYS[2], 'void', 'PX', text(least)) end
if count > 0 then
  local life = math.max(math.min(longest, keep), least)
  redis.call('SET', KEYS[1], table.concat(lines, '\n'), 'PX', text(life))
  if session ~= '' then remember_session(KEYS[#KEYS], session, now, longest) end
end
return answer
