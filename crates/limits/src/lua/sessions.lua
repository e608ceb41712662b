-- The sessions of grants that were charged and may still count. Changes nothing.
--
-- KEYS  an index of each grant (see `remember_session`)
-- ARGV  1 the time, empty for Redis's own; 2 how many of a grant at most
-- Answer: for each grant its sessions, the last charged first

local now, answer = clock(ARGV[1]) / 1000, {}
for i, key in ipairs(KEYS) do
  answer[i] = redis.call('ZRANGE', key, '+inf', '(' .. text(now), 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])
end
return answer
