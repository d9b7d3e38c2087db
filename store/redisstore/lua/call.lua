-- The call: look at all ops, decide, and only then write. What an op asks for:
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4 -- + 8: count it when denied

-- A reply begins with a status and the instant: 0 all went well and what is
-- said of each op follows; in every other case nothing was counted.
local STALE, CLOCK, BROKEN, FOREIGN = 1, 2, 3, 4

local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end

local function write(o, key)
  local v = o:save()
  if not v then
    call('DEL', key)
  else
    local ms = math.max(floor((o:expires() - now + 999) / 1000) + slack, 1)
    call('SET', key, v, 'PX', ms)
    if o.set then
      call('PEXPIRE', o.set, ms)
      call('PEXPIRE', o.hash, ms)
    end
  end
end

local ops, asks, ns, keys, before, fits = {}, {}, {}, {}, {}, {}
local admitted, k = true, 1
for i = 1, count do
  local kind, ask, n
  kind, ask, n, p = up('<BBI7', args, p)
  local key, beside = KEYS[k], nil
  local v = redis.pcall('GET', key)
  if v then
    if type(v) == 'table' then return pk('<BI7I4', FOREIGN, now, i) .. v.err end
    local version, held = string.byte(v, 1, 2)
    if version ~= 1 or held ~= kind then return pk('<BI7I4', BROKEN, now, i) .. cut(v, 1, 2) end
  end
  if kind >= 7 then
    beside = {KEYS[k + 1], KEYS[k + 2]}
    k = k + 2
  end
  k = k + 1
  local o = open[kind](v, 1, now, beside)
  if off then return pk('<BI7', CLOCK, now) end
  ops[i], asks[i], ns[i], keys[i] = o, ask, n, key
  if ask == RECORD or ask == REFUND then
    before[i], fits[i] = o:look(0)
  else
    before[i], fits[i] = o:look(n)
    if ask % 8 == ENFORCE and fits[i] ~= 0 then admitted = false end
  end
end

local reply = pk('<BI7', 0, now)
for i = 1, count do
  local o, n, ask, wait = ops[i], ns[i], asks[i], fits[i]
  local role = ask % 8
  if role == REFUND then
    if not o:sub(n) then write(o, keys[i]) end
  elseif role == RECORD or wait == 0 and (role == SHADOW or role == ENFORCE and admitted) then
    o:add(n)
    write(o, keys[i])
  elseif ask > 8 then -- denied, and counted all the same; the wait is the one after that
    o:add(n)
    write(o, keys[i])
    if wait ~= 0 then
      local _, again = o:look(n)
      if again ~= 0 then wait = again end
    end
  end
  if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
  reply = reply .. pk('<I7I7I7I7', o:look(0), before[i], wait, math.max(o:expires() - o.now, 0))
end
return reply
