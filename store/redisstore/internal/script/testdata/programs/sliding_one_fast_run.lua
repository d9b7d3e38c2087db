local up, pk, call, try, KEYS, ARGV = struct.unpack, struct.pack, redis.call, redis.pcall, KEYS, ARGV
local MAX = 9007199254740991
local NEVER = 9007199254740992
local LOOK, RECORD = 0, 3
local STALE = 1
local cut, floor, type = string.sub, math.floor, type
local ENFORCE, SHADOW, REFUND = 1, 2, 4
local DONE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 2, 3, 4, 5
local plan = ARGV[1]
local now, soonest, repeats = up('<I7I7I2', plan)
local steps = floor((#plan - 16 - 2 * repeats) / 10)
local slack = 1
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
local alike = #ARGV == 2 and steps > 0 and now <= soonest
local common_keys, common_total
if alike then common_keys, common_total = up('<I2', plan, 24), up('<I2', ARGV[2]) end
local all = {}
if #KEYS <= 2000 and 2 * repeats <= #KEYS then
  all = try('MGET', unpack(KEYS))
  if all.err then all = {} end
  for i = 1, repeats do all[up('<I2', plan, #plan + 1 - 2 * i)] = false end
end
local function decide(args, first, total, state)
  local p = 3
local kinds = {}
local off = false
local function look_sliding(o, n)
  local k, fill, group, quota = o.k, o.fill, o.group, o.quota
  local used = k > 0 and (k - 1) * group + fill or 0
  if used > MAX then used = MAX end
  if n == 0 then return used, 0 end
  if n > quota then return used, NEVER end
  local room, leave = quota - n - fill, k
  if room >= 0 then leave = k - 1 - floor(room / group) end
  if leave <= 0 then return used, 0 end
  if leave >= k then return used, o.newest + o.w end
  return used, up('<I7', o.v, o.s + (leave - 1) * 7) + o.w
end
local function regroup(o)
  local v, s, k, group, size = o.v, o.s, o.k, o.group, o.size
  local past, step = o.fill % size, group % size
  for _ = 2, k do past = past >= size - step and past - (size - step) or past + step end
  local whole, room = o.quota % size, o.quota
  past = past >= whole and past - whole or past + (size - whole)
  local kept, excess = {}, o.excess
  for i = k, 1, -1 do
    local hits = i == k and o.fill or group
    local a = math.min(hits, past)
    local b = math.min(hits - a, room)
    past, room, kept[i], excess = past - a, room - b, a + b, math.min(excess + (hits - a - b), MAX)
  end
  o.excess = excess
  local dates, filled = {}, 0
  for i = 1, k do
    local hits, date = kept[i], i == k and o.newest or up('<I7', v, s + (i - 1) * 7)
    while hits > 0 do
      if filled == 0 then dates[#dates + 1] = date end
      dates[#dates] = date
      local part = math.min(hits, size - filled)
      filled, hits = (filled + part) % size, hits - part
    end
  end
  k = #dates
  o.k, o.fill, o.newest = k, filled == 0 and size or filled, dates[k] or 0
  for i = 1, k do dates[i] = pk('<I7', dates[i]) end
  o.v, o.s = table.concat(dates), 1
end
local function add_sliding(o, n)
  if o.k > 0 and o.group ~= o.size then regroup(o) end
  local size, k, newest, added = o.size, o.k, o.newest, 0
  if k > 0 then
    local part = size - o.fill
    if part > n then part = n end
    if part > 0 then
      o.fill, newest, n = o.fill + part, o.now, n - part
    end
  end
  if n > 0 then
    added = floor((n - 1) / size) + 1
    o.fill = n - (added - 1) * size
  end
  local most = 1 - floor((o.fill - o.quota) / size)
  local old = 0
  if added > most - k then
    local drop = added - (most - k)
    o.excess, old, o.k = math.min(o.excess + drop * size, MAX), math.min(drop, k), most
  else
    o.k = k + added
  end
  o.group = size
  if added == 0 then
    o.newest, o.s = newest, o.s + old * 7
    return
  end
  local kept, tail = 0, ''
  if k > old then kept, tail = k - old, pk('<I7', newest) end
  if o.k - 1 > kept then tail = tail .. string.rep(pk('<I7', o.now), o.k - 1 - kept) end
  o.newest, o.s, o.tail = o.now, o.s + old * 7, tail
end
local function save_sliding(o)
  local k, s, newest, tail = o.k, o.s, o.newest, o.tail
  if k <= 0 then return nil end
  local old = (k - 1) * 7 - #tail
  local oldest = newest
  if k > 1 then oldest = old > 0 and up('<I7', o.v, s) or up('<I7', tail) end
  local v = pk('<BBI2I7I7I7I7I7', 1, 1, k, newest, oldest, o.fill, o.group, o.excess)
  v = old > 0 and v .. cut(o.v, s, s + old - 1) .. tail or v .. tail
  o.v, o.s, o.tail = v, 40, ''
  local step = floor(o.w / 8) + 1
  return v, (floor(newest / step) + 1) * step + o.w
end
local function expires_sliding(o)
  return o.k > 0 and o.newest + o.w or 0
end
local function open_sliding(v, i, at)
  local quota, w, size
  quota, w, size, p = up('<I7I7I7', args, p)
  local k, newest, fill, group, excess, s = 0, 0, 0, size, 0, 1
  if v then
    local oldest
    k, newest, oldest, fill, group, excess, s = up('<I2I7I7I7I7I7', v, i + 2)
    if newest > at then at = newest end
    local edge = at - w
    if newest <= edge then
      k, excess = 0, 0
    elseif oldest <= edge then
      local lo, mid, hi = 1, 2, k
      while hi - lo > 1 do
        if up('<I7', v, s + (mid - 1) * 7) <= edge then lo = mid else hi = mid end
        mid = floor((lo + hi) / 2)
      end
      s, k, excess = s + lo * 7, k - lo, 0
    end
  end
  return {
    now = at, quota = quota, w = w, size = size, v = v, s = s, tail = '',
    k = k, newest = newest, fill = fill, group = group, excess = excess,
  }
end
kinds[1] = {open = open_sliding, look = look_sliding, add = add_sliding, save = save_sliding, expires = expires_sliding}
local kind, ask, n
kind, ask, n, p = up('<BBI7', args, p)
if state then
  if type(state) == 'table' then
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
elseif ask >= 8 then
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
end
local numbers, its_waits, waited = {}, {}, false
local replies, slow, done, next_first = {}, 0, 0, 1
local function go_on()
  local call, KEYS, all, numbers, now = call, KEYS, all, numbers, now
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
local known, its_ask, its_n, its_quota, its_w, its_size, its_step
  for turn = done + 1, steps do
    done = turn
    if not alike then
      local which
      deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 7)
      args = ARGV[which]
      total = up('<I2', args)
    end
    local first, p = next_first, 3
    next_first = first + own_keys
    local reply
    if deadline > 0 and now > deadline then
      reply = pk('<BI7', STALE, now)
    else
if known ~= args then
  its_ask, its_n, its_quota, its_w, its_size = up('<BI7I7I7I7', args, p + 1)
  known, its_step = args, floor(its_w / 8) + 1
end
local key = KEYS[first]
local state = all[first] or try('GET', key)
local its_used, its_wait, its_reset
repeat
local head = state or ''
do
  if #head >= 39 then
    local kind, newest, oldest, fill, group = up('<I4I7I7I7I7', head)
    local at = newest > now and newest or now
    local used = (kind - 65793) / 65536 * group + fill
    if kind % 65536 == 257 and group == its_size and oldest > at - its_w and used < MAX then
      local over = used - (its_quota - its_n)
      if its_n > 0 and over > 0 then
        if its_ask ~= RECORD and (its_n > its_quota or over <= group) then
          local wait = its_n > its_quota and NEVER or oldest + its_w - at
          its_used, its_wait, its_reset = used, wait, newest + its_w - at break
        end
      elseif its_ask == LOOK then
        its_used, its_wait, its_reset = used, 0, newest + its_w - at break
      elseif fill + its_n <= group then
        call('SETRANGE', key, '4', pk('<I7I7I7', at, kind > 65793 and oldest or at, fill + its_n))
        local tick = at - at % its_step
        if newest < tick then
          local ms = tick + its_step + its_w - now + 999
          call('PEXPIRE', key, (ms - ms % 1000) / 1000 + slack)
        end
        its_used, its_wait, its_reset = used + its_n, 0, its_w break
      end
    end
  elseif state == false and its_ask ~= LOOK and its_n <= its_size and its_n <= its_quota then
    local ms = its_step - now % its_step + its_w + 999
    local v = pk('<BBI2I7I7I7I7I7', 1, 1, 1, now, now, its_n, its_size, 0)
    call('SET', key, v, 'PX', (ms - ms % 1000) / 1000 + slack)
    its_used, its_wait, its_reset = its_n, 0, its_w break
  end
end
if its_size == 1 and its_n == 1 and its_ask ~= LOOK and state and #state >= 39 then
  local kind, newest, oldest, fill, group, excess = up('<I4I7I7I7I7I7', state)
  local at, k, dates = newest > now and newest or now, (kind - 257) / 65536, 40
  local edge = at - its_w
  if kind % 65536 == 257 and group == 1 and fill == 1 and newest > edge and #state == 32 + 7 * k then
    for _ = 1, 4 do
      if oldest > edge then break end
      dates, k, excess = dates + 7, k - 1, 0
      oldest = k > 1 and up('<I7', state, dates) or newest
    end
    if oldest > edge and k < its_quota then
      local ms = at - at % its_step + its_step + its_w - now + 999
      local begin = pk('<I4I7I7I7I7I7', 65793 + 65536 * k, at, oldest, 1, 1, excess)
      call('SET', key, begin .. string.sub(state, dates) .. pk('<I7', newest), 'PX', (ms - ms % 1000) / 1000 + slack)
      its_used, its_wait, its_reset = k + 1, 0, its_w break
    end
  end
end
until true
if its_used then
  numbers[2 * first - 1], numbers[2 * first] = its_used, its_reset
  if its_wait ~= 0 then its_waits[first], waited = its_wait, true end
else
  reply = decide(args, first, total, state)
end
    end
    if reply then
      if type(reply) == 'table' then error(reply) end
      replies[turn], slow = reply, slow + 1
    end
  end
end
while done < steps do
  local ok, failed = pcall(go_on)
  if not ok then
    if type(failed) == 'table' then failed = failed.err end
    failed = tostring(failed)
    replies[done], slow = pk('<BI7I4I2', FAILED, now, 1, #failed) .. failed, slow + 1
  end
end
local ALL, QUICK, ADMITTED = 7, 8, 9
if slow == 0 and not waited then
  return pk('<BI7' .. string.rep('dd', #KEYS), ADMITTED, now, unpack(numbers, 1, 2 * #KEYS))
end
local function three(from, to)
  local list, n = {}, 0
  for i = from, to do
    list[n + 1], list[n + 2], list[n + 3] = numbers[2 * i - 1], its_waits[i] or 0, numbers[2 * i]
    n = n + 3
  end
  return list, n
end
if slow == 0 then
  local list, n = three(1, #KEYS)
  return pk('<BI7' .. string.rep('I7', n), ALL, now, unpack(list, 1, n))
end
local first = 1
for i = 1, steps do
  local next_one = first + (alike and common_keys or up('<I2', plan, i * 10 + 14))
  if not replies[i] then
    local list, n = three(first, next_one - 1)
    replies[i] = pk('<BI7' .. string.rep('I7', n), QUICK, now, unpack(list, 1, n))
  end
  first = next_one
end
return table.concat(replies)
