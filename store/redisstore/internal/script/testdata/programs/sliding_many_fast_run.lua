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
local function decide(args, first, total)
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
local rows, ops, asks, ns, keys, befores, waits = {}, {}, {}, {}, {}, {}, {}
local admitted, k = true, first
for i = 1, total do
  local kind, ask, n
  kind, ask, n, p = up('<BBI7', args, p)
  local key = KEYS[k]
  local v = try('GET', key)
  if v then
    if type(v) == 'table' then
      if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
      return pk('<BI7I4I2', FOREIGN, now, k - first + 1, #v.err) .. v.err
    end
    local version, held = string.byte(v, 1, 2)
    if version ~= 1 or held ~= kind then
      return pk('<BI7I4I2', BROKEN, now, k - first + 1, math.min(#v, 2)) .. cut(v, 1, 2)
    end
  end
  local row = kinds[kind]
  local o = row.open(v, 1, now, k + 1)
  k = k + (row.keys or 1)
  if off then return pk('<BI7I2I7', CLOCK, now, i, off) end
  local before, wait = row.look(o, ask < RECORD and n or ask > REFUND and n or 0)
  if wait ~= 0 and ask % 8 == ENFORCE then admitted = false end
  rows[i], ops[i], asks[i], ns[i], keys[i], befores[i], waits[i] = row, o, ask, n, key, before, wait
end
local reply = {pk('<BI7', DONE, now)}
for i = 1, total do
  local row, o, ask, n, key, before, wait = rows[i], ops[i], asks[i], ns[i], keys[i], befores[i], waits[i]
  local role, changed, took, again = ask % 8, false, false, false
  local counted = n > MAX and MAX or n
  if role == REFUND then
    changed = not row.sub(o, n)
  elseif role == RECORD or wait == 0 and (role == SHADOW or role == ENFORCE and admitted) then
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
      call('SET', key, s, 'PX', ms)
      if o.set then
        call('PEXPIRE', o.set, ms)
        call('PEXPIRE', o.hash, ms)
      end
    else
      call('DEL', key)
    end
    if again then
      local _, later = row.look(o, n)
      if later ~= 0 then wait = later end
    end
  end
  if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
  local used = took and not row.parts and before + n
  if not used or used > MAX then used = row.look(o, 0) end
  reply[i + 1] = pk('<I7I7I7I7', used, before, wait, math.max(row.expires(o) - o.now, 0))
end
return table.concat(reply)
end
local numbers, its_waits, waited = {}, {}, false
local replies, slow, done, next_first = {}, 0, 0, 1
local function go_on()
  local call, KEYS, all, numbers, now = call, KEYS, all, numbers, now
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
local few_known
local its_ask1, its_n1, its_quota1, its_w1, its_size1, its_step1
local its_ask2, its_n2, its_quota2, its_w2, its_size2, its_step2
local its_ask3, its_n3, its_quota3, its_w3, its_size3, its_step3
local known
local its_asks, its_ns, its_quotas, its_spans, its_sizes, its_heads, its_lives = {}, {}, {}, {}, {}, {}, {}
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
local easy = false
if total == 2 then
  if few_known ~= args then
    few_known = args
    its_ask1, its_n1, its_quota1, its_w1, its_size1 = up('<BI7I7I7I7', args, p + 1 + 30 * (1 - 1))
    its_step1 = (its_w1 - its_w1 % 8) / 8 + 1
    its_ask2, its_n2, its_quota2, its_w2, its_size2 = up('<BI7I7I7I7', args, p + 1 + 30 * (2 - 1))
    its_step2 = (its_w2 - its_w2 % 8) / 8 + 1
  end
  local head1 = all[first + 0]
  local head2 = all[first + 1]
  if true
    and head1 and #head1 >= 39
    and head2 and #head2 >= 39
  then
    local kind1, newest1, oldest1, fill1, group1 = up('<I4I7I7I7I7', head1)
    local at1 = newest1 > now and newest1 or now
    local used1 = (kind1 - 65793) / 65536 * group1 + fill1
    local kind2, newest2, oldest2, fill2, group2 = up('<I4I7I7I7I7', head2)
    local at2 = newest2 > now and newest2 or now
    local used2 = (kind2 - 65793) / 65536 * group2 + fill2
    if true
      and kind1 % 65536 == 257 and its_ask1 == ENFORCE and group1 == its_size1 and oldest1 > at1 - its_w1
      and used1 < MAX and used1 <= its_quota1 - its_n1 and fill1 + its_n1 <= group1
      and kind2 % 65536 == 257 and its_ask2 == ENFORCE and group2 == its_size2 and oldest2 > at2 - its_w2
      and used2 < MAX and used2 <= its_quota2 - its_n2 and fill2 + its_n2 <= group2
    then
      call('SETRANGE', KEYS[first + 0], '4', pk('<I7I7I7', at1, kind1 > 65793 and oldest1 or at1, fill1 + its_n1))
      local tick1 = at1 - at1 % its_step1
      if newest1 < tick1 then
        local ms = tick1 + its_step1 + its_w1 - now + 999
        call('PEXPIRE', KEYS[first + 0], (ms - ms % 1000) / 1000 + slack)
      end
      call('SETRANGE', KEYS[first + 1], '4', pk('<I7I7I7', at2, kind2 > 65793 and oldest2 or at2, fill2 + its_n2))
      local tick2 = at2 - at2 % its_step2
      if newest2 < tick2 then
        local ms = tick2 + its_step2 + its_w2 - now + 999
        call('PEXPIRE', KEYS[first + 1], (ms - ms % 1000) / 1000 + slack)
      end
      numbers[2 * first + 2 * 1 - 3], numbers[2 * first + 2 * 1 - 2] = used1 + its_n1, its_w1
      numbers[2 * first + 2 * 2 - 3], numbers[2 * first + 2 * 2 - 2] = used2 + its_n2, its_w2
      easy = true
    end
  end
end
if total == 3 then
  if few_known ~= args then
    few_known = args
    its_ask1, its_n1, its_quota1, its_w1, its_size1 = up('<BI7I7I7I7', args, p + 1 + 30 * (1 - 1))
    its_step1 = (its_w1 - its_w1 % 8) / 8 + 1
    its_ask2, its_n2, its_quota2, its_w2, its_size2 = up('<BI7I7I7I7', args, p + 1 + 30 * (2 - 1))
    its_step2 = (its_w2 - its_w2 % 8) / 8 + 1
    its_ask3, its_n3, its_quota3, its_w3, its_size3 = up('<BI7I7I7I7', args, p + 1 + 30 * (3 - 1))
    its_step3 = (its_w3 - its_w3 % 8) / 8 + 1
  end
  local head1 = all[first + 0]
  local head2 = all[first + 1]
  local head3 = all[first + 2]
  if true
    and head1 and #head1 >= 39
    and head2 and #head2 >= 39
    and head3 and #head3 >= 39
  then
    local kind1, newest1, oldest1, fill1, group1 = up('<I4I7I7I7I7', head1)
    local at1 = newest1 > now and newest1 or now
    local used1 = (kind1 - 65793) / 65536 * group1 + fill1
    local kind2, newest2, oldest2, fill2, group2 = up('<I4I7I7I7I7', head2)
    local at2 = newest2 > now and newest2 or now
    local used2 = (kind2 - 65793) / 65536 * group2 + fill2
    local kind3, newest3, oldest3, fill3, group3 = up('<I4I7I7I7I7', head3)
    local at3 = newest3 > now and newest3 or now
    local used3 = (kind3 - 65793) / 65536 * group3 + fill3
    if true
      and kind1 % 65536 == 257 and its_ask1 == ENFORCE and group1 == its_size1 and oldest1 > at1 - its_w1
      and used1 < MAX and used1 <= its_quota1 - its_n1 and fill1 + its_n1 <= group1
      and kind2 % 65536 == 257 and its_ask2 == ENFORCE and group2 == its_size2 and oldest2 > at2 - its_w2
      and used2 < MAX and used2 <= its_quota2 - its_n2 and fill2 + its_n2 <= group2
      and kind3 % 65536 == 257 and its_ask3 == ENFORCE and group3 == its_size3 and oldest3 > at3 - its_w3
      and used3 < MAX and used3 <= its_quota3 - its_n3 and fill3 + its_n3 <= group3
    then
      call('SETRANGE', KEYS[first + 0], '4', pk('<I7I7I7', at1, kind1 > 65793 and oldest1 or at1, fill1 + its_n1))
      local tick1 = at1 - at1 % its_step1
      if newest1 < tick1 then
        local ms = tick1 + its_step1 + its_w1 - now + 999
        call('PEXPIRE', KEYS[first + 0], (ms - ms % 1000) / 1000 + slack)
      end
      call('SETRANGE', KEYS[first + 1], '4', pk('<I7I7I7', at2, kind2 > 65793 and oldest2 or at2, fill2 + its_n2))
      local tick2 = at2 - at2 % its_step2
      if newest2 < tick2 then
        local ms = tick2 + its_step2 + its_w2 - now + 999
        call('PEXPIRE', KEYS[first + 1], (ms - ms % 1000) / 1000 + slack)
      end
      call('SETRANGE', KEYS[first + 2], '4', pk('<I7I7I7', at3, kind3 > 65793 and oldest3 or at3, fill3 + its_n3))
      local tick3 = at3 - at3 % its_step3
      if newest3 < tick3 then
        local ms = tick3 + its_step3 + its_w3 - now + 999
        call('PEXPIRE', KEYS[first + 2], (ms - ms % 1000) / 1000 + slack)
      end
      numbers[2 * first + 2 * 1 - 3], numbers[2 * first + 2 * 1 - 2] = used1 + its_n1, its_w1
      numbers[2 * first + 2 * 2 - 3], numbers[2 * first + 2 * 2 - 2] = used2 + its_n2, its_w2
      numbers[2 * first + 2 * 3 - 3], numbers[2 * first + 2 * 3 - 2] = used3 + its_n3, its_w3
      easy = true
    end
  end
end
if not easy then
if known ~= args then
  known = args
  local q = p
  for i = 1, total do
    local _
    _, its_asks[i], its_ns[i], its_quotas[i], its_spans[i], its_sizes[i], q = up('<BBI7I7I7I7', args, q)
  end
end
local all_fit, in_group, waiting, decided = true, true, false, 0
if total <= 1000 then
  for i = 1, total do
    local k = first + i - 1
    local head = all[k] or try('GET', KEYS[k]) or ''
    if #head < 39 then break end
    local version, kind, groups, newest, oldest, fill, group = up('<BBI2I7I7I7I7', head)
    local at, n, w = newest > now and newest or now, its_ns[i], its_spans[i]
    local used = (groups - 1) * group + fill
    local over = n > 0 and used - (its_quotas[i] - n) or 0
    if version ~= 1 or kind ~= 1 or group ~= its_sizes[i] or oldest <= at - w or used >= MAX
      or over > group and n <= its_quotas[i] then break end
    if over > 0 then
      its_waits[k], waiting = n > its_quotas[i] and NEVER or oldest + w - at, true
      if its_asks[i] ~= LOOK then all_fit = false end
    elseif its_asks[i] ~= LOOK and all_fit then
      in_group = in_group and fill + n <= group
      its_heads[i] = pk('<I7I7I7', at, groups > 1 and oldest or at, fill + n)
      local step = floor(w / 8) + 1
      local tick = at - at % step
      its_lives[i] = newest < tick and tick + step + w
    end
    numbers[2 * k - 1], numbers[2 * k] = used, newest + w - at
    decided = i
  end
end
if decided == total and (in_group or not all_fit) then
  if all_fit then
    for i = 1, total do
      if its_asks[i] ~= LOOK then
        local k = first + i - 1
        call('SETRANGE', KEYS[k], '4', its_heads[i])
        if its_lives[i] then call('PEXPIRE', KEYS[k], floor((its_lives[i] - now + 999) / 1000) + slack) end
        numbers[2 * k - 1], numbers[2 * k] = numbers[2 * k - 1] + its_ns[i], its_spans[i]
      end
    end
  end
  waited = waited or waiting
else
  reply = decide(args, first, total)
end
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
