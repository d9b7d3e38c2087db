-- Decides a call: looks at all of its ops, decides, and only then writes.
local seen = {false, false, false, false, false, false, false} -- seven values for each op
local admitted, k = true, first
local left -- the hits that fit under all ops, if some take up to what fits
for i = 1, total do
  local kind, ask, n, most
  kind, ask, n, p = up('<BBI7', args, p)
  if ask >= UP_TO then most, p = up('<I7', args, p) end
  local key = KEYS[k]
  local v = try('GET', key)
  if v then
    if type(v) == 'table' then -- an error
      if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
      return pk('<BI7I4I2', FOREIGN, now, k - first + 1, #v.err) .. v.err
    end
    read = read + #v
    local version, held = string.byte(v, 1, 2)
    if version ~= 1 or held ~= kind then
      return pk('<BI7I4I2', BROKEN, now, k - first + 1, math.min(#v, 2)) .. cut(v, 1, 2)
    end
  end
  local row = kinds[kind]
  local o = row.open(v, 1, now, k + 1)
  k = k + (row.keys or 1)
  if off then return pk('<BI7I2I7', CLOCK, now, i, off) end
  local plain = ask % UP_TO
  local before, wait = row.look(o, plain < RECORD and n or plain > REFUND and n or 0)
  if wait ~= 0 and ask % 8 == ENFORCE then admitted = false end
  if most then left = math.min(left or NEVER, math.max(most - before, 0)) end
  local m = 7 * i
  seen[m - 6], seen[m - 5], seen[m - 4], seen[m - 3] = row, o, ask, n
  seen[m - 2], seen[m - 1], seen[m] = key, before, wait
end

if left then
  admitted = true
  for m = 7, 7 * total, 7 do
    local ask = seen[m - 4]
    if ask >= UP_TO then
      local row, n = seen[m - 6], math.max(math.min(seen[m - 3], left), 1)
      ask = ask - UP_TO
      seen[m - 4], seen[m - 3] = ask, n
      if ask ~= RECORD then seen[m - 1], seen[m] = row.look(seen[m - 5], n) end
    end
    if seen[m] ~= 0 and ask % 8 == ENFORCE then admitted = false end
  end
end

local reply = pk('<BI7', DONE, now)
local replies = total > 1 and {reply}
for i = 1, total do
  local m = 7 * i
  local row, o, ask, n = seen[m - 6], seen[m - 5], seen[m - 4], seen[m - 3]
  local key, before, wait = seen[m - 2], seen[m - 1], seen[m]
  local role, changed, took, again = ask % 8, false, false, false
  local counted = n > MAX and MAX or n
  if role == REFUND then
    changed = not row.sub(o, n)
  elseif role == RECORD or wait == 0 and (role == SHADOW or role == ENFORCE and admitted) then
    row.add(o, counted)
    changed = true
    took = role ~= RECORD
  elseif ask >= 8 then -- denied, and counted nevertheless; the wait is the one after that
    row.add(o, counted)
    changed, again = true, wait ~= 0
  end
  if changed then
    local s, till = row.save(o)
    if s then
      local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
      call('SET', key, s, 'PX', ms)
      if o.set then
        call('PEXPIRE', o.set, ms)
        call('PEXPIRE', o.hash, ms)
      end
    else
      call('UNLINK', key)
    end
    if again then
      local _, later = row.look(o, n)
      if later ~= 0 then wait = later end
    end
  end
  if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
  local used = took and not row.parts and before + n
  if not used or used > MAX then used = row.look(o, 0) end
  local own = pk('<I7I7I7I7', used, before, wait, math.max(row.expires(o) - o.now, 0))
  if total == 1 then return reply .. own end
  replies[i + 1] = own
end
return table.concat(replies)
