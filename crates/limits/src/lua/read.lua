-- How counters stand. Changes nothing.
--
-- KEYS  the counters
-- ARGV  1 the time, empty for Redis's own; then six for each counter (see `ask`)
-- Answer: `read`, then four for each counter (see `tell`)

local now, answer = clock(ARGV[1]), {'read'}
for i = 1, #KEYS do
  local asked = ask(6 * i - 4)
  tell(answer, load(KEYS[i], asked.span, now), asked.max, asked.amount, now)
end
return answer
