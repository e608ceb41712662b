-- Puts a message in the mailbox of another replica.
--
-- KEYS  1 the mailbox, 2 what says that somebody reads it
-- ARGV  1 the message; 2 how many may wait; 3 milliseconds for which they wait
-- Answer: 1 put, 0 full, -1 nobody reads

if redis.call('EXISTS', KEYS[2]) == 0 then
  return -1
end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
