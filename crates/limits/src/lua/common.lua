-- What the scripts share. `buckets.rs` is the same in Rust and says why.
--
-- A counter is one string, `<epoch>|<bucket>:<whole>:<billionths> ...`, oldest bucket first, with at
-- most 21 buckets. A reservation is one string: a line `<epoch> <bucket> <whole> <billionths> <key>`
-- for each charge, or `void` once it is given back. Amounts are pairs (whole part, billionths), so
-- that sums are exact: whole parts stay below 2^53, where Lua's numbers are. Times are microseconds.

local BILLION = 1000000000
local MONDAY = 345600000000
local DAY = 86400000000

local function text(number) return string.format('%.0f', number) end

-- Redis's own clock. Tests give their own.
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function add(a, b)
  local whole, part = a[1] + b[1], a[2] + b[2]
  if part >= BILLION then whole, part = whole + 1, part - BILLION end
  return {whole, part}
end

local function subtract(a, b)
  local whole, part = a[1] - b[1], a[2] - b[2]
  if part < 0 then whole, part = whole - 1, part + BILLION end
  return {whole, part}
end

local function at_most(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] <= b[2]) end
local function positive(a) return a[1] > 0 or (a[1] == 0 and a[2] > 0) end

-- Days since 1970 of the first of a month, counted from year 0, and back.
local function month_start(month)
  local year, m = math.floor(month / 12), month % 12 + 1
  if m <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local of_era = year - era * 400
  local shifted = (m + 9) % 12
  local day = math.floor((153 * shifted + 2) / 5)
  return (era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100) + day - 719468) * DAY
end

local function month_of(now)
  local days = math.floor(now / DAY) + 719468
  local era = math.floor(days / 146097)
  local of_era = days - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local shifted = math.floor((5 * of_year + 2) / 153)
  local m = (shifted + 2) % 12
  year = year + era * 400
  if m <= 1 then year = year + 1 end
  return year * 12 + m
end

-- A span is {kind, length}: `s` and the width of a bucket, `c` and the length of a window, or `m`.
local function kept(span) return span[1] == 's' and 21 or 1 end

local function bucket_of(span, now)
  if span[1] == 's' then return math.floor(now / span[2]) end
  if span[1] == 'c' then return math.floor((now - MONDAY) / span[2]) end
  return month_of(now)
end

local function leaves_at(span, bucket)
  if span[1] == 's' then return (bucket + 21) * span[2] end
  if span[1] == 'c' then return (bucket + 1) * span[2] + MONDAY end
  return month_start(bucket + 1)
end

local function charge(counter, bucket, amount)
  local last = counter.buckets[#counter.buckets]
  if not positive(amount) then return end
  if last and last[1] == bucket then
    last[2] = add(last[2], amount)
  else
    counter.buckets[#counter.buckets + 1] = {bucket, amount}
  end
end

local function load(key, span, now)
  local counter = {key = key, span = span, epoch = '0', buckets = {}}
  local stored = redis.call('GET', key)
  if not stored then return counter end
  counter.stored = true
  counter.epoch = string.match(stored, '^(%d+)|') or '0'
  local current = bucket_of(span, now)
  for bucket, whole, part in string.gmatch(stored, '(%-?%d+):(%d+):(%d+)') do
    bucket = tonumber(bucket)
    if bucket > current then counter.ahead = true end
    if bucket > current - kept(span) then
      charge(counter, math.min(bucket, current), {tonumber(whole), tonumber(part)})
    end
  end
  return counter
end

local function used(counter)
  local sum = {0, 0}
  for _, filled in ipairs(counter.buckets) do sum = add(sum, filled[2]) end
  return sum
end

-- Milliseconds until the counter is empty, and a second more.
local function lifetime(counter, now)
  local last = counter.buckets[#counter.buckets]
  return math.ceil((leaves_at(counter.span, last[1]) - now) / 1000) + 1000
end

local function save(counter, now)
  if #counter.buckets == 0 and counter.epoch == '0' then
    redis.call('DEL', counter.key)
    return 0
  end
  local parts = {}
  for i, filled in ipairs(counter.buckets) do
    parts[i] = text(filled[1]) .. ':' .. text(filled[2][1]) .. ':' .. text(filled[2][2])
  end
  local life
  if #parts > 0 then
    life = lifetime(counter, now)
  else
    life = math.ceil((leaves_at(counter.span, bucket_of(counter.span, now)) - now) / 1000) + 1000
  end
  redis.call('SET', counter.key, counter.epoch .. '|' .. table.concat(parts, ' '), 'PX', text(life))
  return life
end

-- A counter that lost its time to live (PERSIST, a restored dump) gets it back; one that lies ahead
-- of the clock begins to run out.
local function heal(counter, now)
  if counter.ahead or (counter.stored and redis.call('PTTL', counter.key) == -1) then save(counter, now) end
end

local function take_back(counter, charged)
  if counter.epoch ~= charged.epoch then return end
  local last = counter.buckets[#counter.buckets]
  if not last then return end
  local bucket = math.min(charged.bucket, last[1])
  for i, filled in ipairs(counter.buckets) do
    if filled[1] == bucket then
      if at_most(filled[2], charged.amount) then
        table.remove(counter.buckets, i)
      else
        filled[2] = subtract(filled[2], charged.amount)
      end
      return
    end
  end
end

-- The charges of a reservation by key, or nil if it was never charged, or was given back.
local function charges_of(stored)
  if not stored or stored == 'void' then return nil end
  local charges = {}
  for epoch, bucket, whole, part, key in string.gmatch(stored, '(%d+) (%-?%d+) (%d+) (%d+) ([^\n]+)') do
    charges[key] = {epoch = epoch, bucket = tonumber(bucket), amount = {tonumber(whole), tonumber(part)}}
  end
  return charges
end

-- Microseconds until `amount` fits under `max`; -1: it fits; -2: it never will.
local function wait(counter, max, amount, now)
  if not at_most(amount, max) then return -2 end
  local total = add(used(counter), amount)
  if at_most(total, max) then return -1 end
  for _, filled in ipairs(counter.buckets) do
    total = subtract(total, filled[2])
    if at_most(total, max) then return leaves_at(counter.span, filled[1]) - now end
  end
  return -1
end

-- Appends used (whole, billionths), wait and time to empty (-1: it is empty), as text.
local function tell(answer, counter, max, amount, now)
  local sum = used(counter)
  local last = counter.buckets[#counter.buckets]
  answer[#answer + 1] = text(sum[1])
  answer[#answer + 1] = text(sum[2])
  answer[#answer + 1] = text(wait(counter, max, amount, now))
  answer[#answer + 1] = text(last and leaves_at(counter.span, last[1]) - now or -1)
end

-- Notes in a grant's index that a session was charged: member = session, score = when its counters
-- are empty, in milliseconds. At most a thousand; the first to end goes.
local function remember_session(index, session, now, life)
  local at = now / 1000
  redis.call('ZADD', index, 'GT', text(at + life), session)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', text(at))
  redis.call('ZREMRANGEBYRANK', index, 0, -1001)
  if redis.call('PTTL', index) < life then redis.call('PEXPIRE', index, text(life)) end
end

-- Reads one ask of six arguments: kind, length, max (whole, billionths), amount (whole, billionths).
local function ask(at)
  return {
    span = {ARGV[at], tonumber(ARGV[at + 1])},
    max = {tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])},
    amount = {tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])},
  }
end

local NOTHING = {0, 0}
