"""The scripts that Redis runs for tasks: each of them reads, decides and writes in one step.

A task is a hash with these fields: `v` the version, `d` the record, `h` the record without what
listings do not need (where that is much shorter), `n` the mark of the last write, `f` whether it is
over, `w` the worker that works on it, `c` how often work on it was begun, `x` the reason why no
worker may go on with it, and `u` with the id of a worker, that this worker cannot go on with it.

The places of an owner's tasks are a sorted set in the order of their text. A second sorted set has
the times at which they expire: members of a set do not expire by themselves.
"""

from __future__ import annotations

import hashlib
from typing import Final

import attrs

NOBODY: Final = "-"
"""The worker of a task that its own worker has given up. It never has a lease."""
MOST_CHANGES: Final = 10_000
"""Changes of tasks in their stream."""
CHANGES_MS: Final = 3_600_000
"""How long they are kept after the last one."""

SAVED: Final = 1
OUTDATED: Final = 0
FULL: Final = 2


@attrs.frozen
class Script:
    """A script for Redis.

    Attributes:
        text: The text, in Lua.
        digest: The digest by which Redis knows the script once it was sent.
    """

    text: str
    digest: str

    @classmethod
    def of(cls, text: str) -> Script:
        """The script with a text."""
        # Redis has chosen the digest: it protects nothing.
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_FUNCTIONS: Final = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function keep(key, is_new, milliseconds)
  if milliseconds == '' then
    redis.call('PERSIST', key)
  elseif is_new then
    redis.call('PEXPIRE', key, milliseconds)
  else
    redis.call('PEXPIRE', key, milliseconds, 'GT')
  end
end
local function add(key, milliseconds, ...)
  local is_new = redis.call('EXISTS', key) == 0
  redis.call(...)
  keep(key, is_new, milliseconds)
end
local function purge(places, expiries)
  local at = now()
  while true do
    local old = redis.call('ZRANGEBYSCORE', expiries, '-inf', at, 'LIMIT', 0, 1000)
    if #old == 0 then return end
    redis.call('ZREM', places, unpack(old))
    redis.call('ZREM', expiries, unpack(old))
  end
end
"""

SAVE: Final = Script.of(
    _FUNCTIONS + f"""
local most_changes, changes_milliseconds = {MOST_CHANGES}, {CHANGES_MS}
"""
    """
local task, places, expiries, workers, changes, count = unpack(KEYS)
local how, mark, id, place, milliseconds, final, worker, running, most, head, version, data =
  unpack(ARGV)
version = tonumber(version)
local stored = redis.call('HMGET', task, 'v', 'n', 'w')
if stored[1] then
  if how == 'restore' or stored[2] == mark then return 1 end
  if tonumber(stored[1]) ~= version - 1 then return 0 end
elseif version > 1 and how == 'change' then
  return 0
end
if milliseconds ~= '' and tonumber(milliseconds) <= 0 then
  redis.call('SREM', running .. (stored[3] or worker), id)
  redis.call('UNLINK', task)
  redis.call('ZREM', places, place)
  redis.call('ZREM', expiries, place)
  return 1
end
if not stored[1] then
  purge(places, expiries)
  if version == 1 and redis.call('ZCARD', places) >= tonumber(most) then return 2 end
  redis.call('HSET', task, 'w', worker, 'c', 1)
  stored[3] = worker
end
redis.call('HSET', task, 'v', version, 'n', mark, 'f', final, 'h', head, 'd', data)
if milliseconds == '' then
  redis.call('PERSIST', task)
else
  redis.call('PEXPIRE', task, milliseconds)
end
local expiry = milliseconds == '' and '+inf' or now() + tonumber(milliseconds)
add(places, milliseconds, 'ZADD', places, 0, place)
add(expiries, milliseconds, 'ZADD', expiries, expiry, place)
if final == '1' then
  redis.call('SREM', running .. stored[3], id)
else
  add(running .. stored[3], milliseconds, 'SADD', running .. stored[3], id)
  add(workers, milliseconds, 'SADD', workers, stored[3])
end
if version > 1 then
  local number = redis.call('INCR', count)
  redis.call('PEXPIRE', count, changes_milliseconds)
  local told = cjson.encode({number, worker, id})
  redis.call('XADD', changes, 'MAXLEN', '~', most_changes, '*', 't', told)
  redis.call('PEXPIRE', changes, changes_milliseconds)
end
return 1
"""
)
"""Store a record: `SAVED`, `OUTDATED` where another version is stored, or `FULL`.

A second attempt with the same mark changes nothing. `how` is `change`; `keep`, which writes also
where the record is missing though it should be there; or `restore`, which writes only then.
"""

FORGET: Final = Script.of(
    """
local task, places, expiries = unpack(KEYS)
local mark, id, place, running = unpack(ARGV)
if redis.call('HGET', task, 'n') ~= mark then return 0 end
redis.call('SREM', running .. redis.call('HGET', task, 'w'), id)
redis.call('UNLINK', task)
redis.call('ZREM', places, place)
redis.call('ZREM', expiries, place)
return 1
"""
)
"""Remove a task that was perhaps stored, and of which nobody was told."""

PAGE: Final = Script.of(
    _FUNCTIONS
    + """
local places, expiries = unpack(KEYS)
local after, limit, tasks = unpack(ARGV)
purge(places, expiries)
limit = tonumber(limit)
local found = {}
while #found < limit do
  local page = redis.call('ZRANGEBYLEX', places, after, '+', 'LIMIT', 0, limit - #found)
  if #page == 0 then break end
  for _, place in ipairs(page) do
    local key = tasks .. string.sub(place, 17)
    local record = redis.call('HGET', key, 'h')
    if record == '' then record = redis.call('HGET', key, 'd') end
    if record then
      found[#found + 1] = record
    else
      redis.call('ZREM', places, place)
      redis.call('ZREM', expiries, place)
    end
    after = '(' .. place
  end
end
return found
"""
)
"""The records of an owner behind a place, in order, without those that are gone."""

CLAIM: Final = Script.of(
    _FUNCTIONS
    + """
local workers = KEYS[1]
local self, leases, running, tasks, most, looks = unpack(ARGV)
local found = {}
for _, worker in ipairs(redis.call('SMEMBERS', workers)) do
  if worker ~= self and redis.call('EXISTS', leases .. worker) == 0 then
    local ids = redis.call('SRANDMEMBER', running .. worker, looks)
    if #ids == 0 then redis.call('SREM', workers, worker) end
    for _, id in ipairs(ids) do
      if #found >= tonumber(most) then return found end
      local key = tasks .. id
      if redis.call('HEXISTS', key, 'u' .. self) == 0 then
        redis.call('SREM', running .. worker, id)
        local task = redis.call('HMGET', key, 'd', 'f', 'w', 'x')
        if task[1] and task[2] == '0' and task[3] == worker then
          local left = redis.call('PTTL', key)
          if left < 0 then left = '' end
          redis.call('HSET', key, 'w', self)
          add(running .. self, left, 'SADD', running .. self, id)
          add(workers, left, 'SADD', workers, self)
          found[#found + 1] = {id, task[1], redis.call('HINCRBY', key, 'c', 1), task[4] or ''}
        end
      end
    end
  end
end
return found
"""
)
"""Take over tasks of workers that are gone: ids, records, how often work was begun, reasons.

Those that this worker cannot go on with cost it no more than a look.
"""

RELEASE: Final = Script.of(
    _FUNCTIONS
    + """
local task, workers = unpack(KEYS)
local id, running, reason, nobody, self, unfit = unpack(ARGV)
redis.call('SREM', running .. self, id)
local stored = redis.call('HMGET', task, 'f', 'w')
if stored[1] ~= '0' or stored[2] ~= self then return 0 end
local left = redis.call('PTTL', task)
if left < 0 then left = '' end
redis.call('HSET', task, 'w', nobody)
if unfit == '1' then redis.call('HSET', task, 'u' .. self, 1) end
if reason ~= '' then
  redis.call('HSET', task, 'x', reason)
else
  redis.call('HINCRBY', task, 'c', -1)
end
add(running .. nobody, left, 'SADD', running .. nobody, id)
add(workers, left, 'SADD', workers, nobody)
return 1
"""
)
"""Give up a task of this worker: any other takes it over, and lets it fail if there is a reason.

Without a reason, that the work was begun here does not count. If it is `unfit` for this worker, it
is not taken over by this worker again.
"""
