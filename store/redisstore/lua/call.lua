-- The call: look at all ops, decide, and only then write.
--: many
local ops, asks, ns, keys, befores, waits = {}, {}, {}, {}, {}, {}
--: all
local admitted, k = true, 1
--: many
for i = 1, count do
--: all
  local kind, ask, n
  kind, ask, n, p = up('<BBI7', args, p)
  local key, beside = KEYS[k], nil
--: fast_one
  local v = whole
  if v == nil then v = redis.pcall('GET', key) end
--: not fast_one
  local v = redis.pcall('GET', key)
--: all
  if v then
    if type(v) == 'table' then -- an error
      return string.find(v.err, 'WRONGTYPE', 1, true) and pk('<BI7I4', FOREIGN, now, k) .. v.err or v
    end
    local version, held = string.byte(v, 1, 2)
    if version ~= 1 or held ~= kind then return pk('<BI7I4', BROKEN, now, k) .. cut(v, 1, 2) end
  end
--: members
  if kind >= 7 then
    beside = {KEYS[k + 1], KEYS[k + 2]}
    k = k + 2
  end
--: all
  k = k + 1
  local o = open[kind](v, 1, now, beside)
  if off then return pk('<BI7', CLOCK, now) end
  local before, wait = o:look(ask < RECORD and n or ask > REFUND and n or 0)
  if wait ~= 0 and ask % 8 == ENFORCE then admitted = false end
--: many
  ops[i], asks[i], ns[i], keys[i], befores[i], waits[i] = o, ask, n, key, before, wait
end
--: all

local reply = pk('<BI7', DONE, now)
--: many
for i = 1, count do
  local o, ask, n, key, before, wait = ops[i], asks[i], ns[i], keys[i], befores[i], waits[i]
--: all
  local role, changed, took, again = ask % 8, false, false, false
--: refund
  if role == REFUND then changed = not o:sub(n) end
--: all
  if role == RECORD or wait == 0 and (role == SHADOW or role == ENFORCE and admitted) then
    o:add(n)
    changed = true
    took = role ~= RECORD
  elseif ask >= 8 then -- denied, and counted all the same; the wait is the one after that
    o:add(n)
    changed, again = true, wait ~= 0
  end
  if changed then
    local s = o:save()
    if s then
      local till = o:expires()
--: sliding
      if o.size then -- as in fast_one.lua
        local step = floor(o.w / 8) + 1
        till = (floor(o.newest / step) + 1) * step + o.w
      end
--: all
      local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
      call('SET', key, s, 'PX', ms)
--: members
      if o.set then
        call('PEXPIRE', o.set, ms)
        call('PEXPIRE', o.hash, ms)
      end
--: all
    else
      call('DEL', key)
    end
    if again then
      local _, later = o:look(n)
      if later ~= 0 then wait = later end
    end
  end
  if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
--: not counts_else
  local used = took and before + n
  if not took or used > MAX then used = o:look(0) end
--: counts_else
  local used = o:look(0)
--: all
  reply = reply .. pk('<I7I7I7I7', used, before, wait, math.max(o:expires() - o.now, 0))
--: many
end
--: all
return reply
