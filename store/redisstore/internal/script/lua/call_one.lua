-- A call with one op: look, decide, and only then write.
local kind, ask, n
kind, ask, n, p = up('<BBI7', args, p)
local state = try('GET', KEYS[first])
if state then
  if type(state) == 'table' then -- an error
    if not string.find(state.err, 'WRONGTYPE', 1, true) then return state end
    return pk('<BI7I4I2', FOREIGN, now, 1, #state.err) .. state.err
  end
  local version, held = string.byte(state, 1, 2)
  if version ~= 1 or held ~= kind then
    return pk('<BI7I4I2', BROKEN, now, 1, math.min(#state, 2)) .. cut(state, 1, 2)
  end
end
local row = kinds[kind]
local o = row.open(state, 1, now, first + 1)
if off then return pk('<BI7I2I7', CLOCK, now, 1, off) end
local before, wait = row.look(o, ask < RECORD and n or ask > REFUND and n or 0)

local role, changed, took, again = ask % 8, false, false, false
local counted = n > MAX and MAX or n
if role == REFUND then
  changed = not row.sub(o, n)
elseif role == RECORD or wait == 0 and role ~= LOOK then
  row.add(o, counted)
  changed = true
  took = role ~= RECORD
elseif ask >= 8 then -- denied, and counted all the same; the wait is the one after that
  row.add(o, counted)
  changed, again = true, wait ~= 0
end
if changed then
  local s, till = row.save(o)
  if s then
    local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
    call('SET', KEYS[first], s, 'PX', ms)
    if o.set then
      call('PEXPIRE', o.set, ms)
      call('PEXPIRE', o.hash, ms)
    end
  else
    call('DEL', KEYS[first])
  end
  if again then
    local _, later = row.look(o, n)
    if later ~= 0 then wait = later end
  end
end
if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
local used = took and not row.parts and before + n
if not used or used > MAX then used = row.look(o, 0) end
return pk('<BI7I7I7I7I7', DONE, now, used, before, wait, math.max(row.expires(o) - o.now, 0))
