-- Hits that are held. State: version, kind 12, the kind of the window, number of
-- holds, what they hold, the latest instant at which the state was changed, the
-- latest instant of a take whose hold is kept when it ends, plus 1, or 0; then 34
-- bytes a hold, the one that ends first at the front: end, instant of the take, id,
-- whether it is kept when it ends, hits; then the hits that are final, as the kind
-- of window keeps them for this.
--
-- An op o has held if its state is of this form, and then count, sum, seen, kept and base,
-- and the holds in list from first on; otherwise it has plain, the state as the kind's row
-- keeps it. A server hashes all of a new string, so list is the whole state until the holds
-- change.

-- anew makes the state one without hits, of the kind.
local function anew(o)
  local back = p
  p = o.p
  o.held, o.base, o.plain = false, nil, o.row.open(false, 1, o.now, o.k)
  o.plain.most = o.most
  p = back
end

-- extra returns how many hits count at t besides those that are final.
local function extra(o, t)
  local n = o.sum
  for s = o.first, behind(o) - 1, HOLD_SIZE do
    local till, at, _, _, keep, hits = hold_at(o, s)
    if till > t then break end
    if keep == 0 or o.row.aged.leaves(o.base, at) <= t then n = n - hits end
  end
  return n
end

local function used_holding(o, t)
  if o.row.aged.level then
    return (o.row.aged.level(o, t, 0))
  end
  return math.min(o.row.aged.used(o.base, t) + extra(o, t), MAX)
end

local function fits_holding(o, t, n)
  if n > MAX then n = MAX end
  if o.row.aged.level then
    local _, fits = o.row.aged.level(o, t, n)
    return fits
  end
  local room = o.base.quota - extra(o, t)
  return n <= room and o.row.aged.used(o.base, t) <= room - n
end

local function expires_holding(o)
  local aged, last = o.row.aged, 0
  if o.count > 0 then
    last = last_end(o)
    if aged.drained then
      return math.max(last, aged.drained(o, last))
    end
  end
  last = math.max(last, aged.expires(o.base))
  if o.kept > 0 then last = math.max(last, aged.lasts(o.base, o.kept - 1)) end
  return last
end

-- lasts returns the instant until which the state has to be kept: until a closed period of
-- it cannot be read any more, or until it expires.
local function lasts(o)
  local aged, part = o.row.aged, o.held and o.base or o.plain
  if not part.keeps then return o.held and expires_holding(o) or o.row.expires(part) end
  local last = aged.lasting(part)
  if not o.held then return last end
  if o.count > 0 then last = math.max(last, (last_end(o))) end
  if o.kept > 0 then last = math.max(last, aged.lasting_hold(part, o.kept - 1)) end
  return last
end

-- departures returns a function that returns when the next hits of the holds leave after
-- now, and how many, or nil. No hold leaves before its end, and mostly they leave in the order
-- of their ends, so it reads only the first of them.
local function departures(o)
  local leaves, size = o.row.aged.leaves, behind(o)
  local s, unread, latest = o.first, 0, 0 -- holds from s to unread were taken in order, the last at latest, and are kept
  local times, hits, i            -- of what leaves from s on, if that is in another order

  local function departure(from)
    local till, at, _, _, keep, n = hold_at(o, from)
    return keep == 1 and math.max(till, leaves(o.base, at)) or till, n, at
  end
  -- is_first reports whether no hold from unread on leaves before t.
  local function is_first(t)
    if unread >= size or up('<I7', o.list, unread) >= t then return true end
    local stop = o.first + ended(o, t - 1) * HOLD_SIZE
    while unread < stop do
      local at = up('<I7', o.list, unread + AT)
      if at < latest or byte(o.list, unread + KEEP) == 0 then return false end
      unread, latest = unread + HOLD_SIZE, at
    end
    return true
  end
  local function sort()
    times, hits, i = {}, {}, 0
    for from = s, size - 1, HOLD_SIZE do
      local t, n = departure(from)
      if t > o.now then
        if not hits[t] then times[#times + 1] = t end
        hits[t] = (hits[t] or 0) + n
      end
    end
    table.sort(times)
  end
  return function()
    while not times and s < size do
      local t, n, at = departure(s)
      if unread <= s then unread, latest = s + HOLD_SIZE, at end
      if is_first(t) then
        s = s + HOLD_SIZE
        if t > o.now then return t, n end
      else
        sort()
      end
    end
    if not times then return nil end
    i = i + 1
    return times[i], hits[times[i]]
  end
end

-- wait_holding returns the instant from which n hits, which do not fit now, fit if
-- no hold is settled. It goes through what leaves, in order.
local function wait_holding(o, n)
  local aged = o.row.aged
  if aged.wait then return aged.wait(o, n) end
  local used, room = aged.used(o.base, o.now), o.base.quota - extra(o, o.now)
  local at, departs = o.now, departures(o)
  local ends, held = departs()
  local final = aged.leaving(o.base, o.now) -- returns when the next final hits leave, and how many
  local leaves, gone = final()
  while n > room or used > room - n do
    if ends and (not leaves or ends <= leaves) then
      at, room = ends, room + held
      ends, held = departs()
    elseif leaves then
      at, used = leaves, used - gone
      leaves, gone = final()
    else
      return NEVER
    end
    if at == NEVER then return NEVER end
  end
  return at
end

local function look_holding(o, n)
  local used, capacity = used_holding(o, o.now), o.base.cap or o.base.quota
  if n == 0 or capacity > MAX then return used, 0 end
  if n > capacity then return used, NEVER end
  local fits = 0
  if not fits_holding(o, o.now, n) then
    fits = wait_holding(o, n)
    if fits == NEVER then return used, NEVER end
  end
  if o.most then
    local over = ended(o, o.now)
    if o.count - over >= o.most then
      fits = math.max(fits, (hold_at(o, o.first + over * HOLD_SIZE)))
    end
  end
  return used, fits
end

-- begin_holding makes the state one with holds, in which what has ended is final.
local function begin_holding(o)
  local aged = o.row.aged
  if not o.held then
    o.held, o.list, o.first, o.count, o.sum, o.seen, o.kept = true, '', 1, 0, 0, o.now, 0
    o.base, o.plain = aged.adopt(o.plain), nil
    return
  end
  local over, s, lost, kept = ended(o, o.now), o.first, false, {}
  local together = aged.book_all and o.base.hits + o.sum <= MAX
  for _ = 1, over do
    local till, at, _, _, keep, hits, after = hold_at(o, s)
    o.sum = o.sum - hits
    lost = lost or at + 1 == o.kept
    if keep == 1 and together then
      kept[at] = (kept[at] or 0) + hits
    elseif keep == 1 then
      aged.book(o.base, at, till, hits)
    end
    s = after
  end
  if together then aged.book_all(o.base, kept) end
  if aged.advance then aged.advance(o.base, o.now) end
  if over == 0 then return end
  o.first, o.count = s, o.count - over
  if lost then o.kept = newest_hold(o) end
  if o.count == 0 then aged.trim(o.base) end
end

local function finish_holding(o)
  local aged = o.row.aged
  if aged.tighten then aged.tighten(o) end -- after what has left
  o.seen = math.max(o.seen, o.now)
  if o.count > 0 then return end
  if (o.base.keeps and aged.lasting or aged.expires)(o.base) <= o.now then
    anew(o)
  elseif not aged.dated then
    aged.trim(o.base)
    o.held, o.plain, o.base = false, o.base, nil
  elseif o.base.n == 0 then
    anew(o)
  end
end

-- hold counts n hits as a hold, and reports whether it could.
local function hold(o, n, id, at, till)
  if live_hold(o, id) then return false end
  if o.row.hold then return o.row.hold(o.plain, n, id, till) end
  if o.held and o.count - ended(o, o.now) >= o.most then return false end
  begin_holding(o)
  o.row.aged.begin(o.base)
  insert_hold(o, till, at, id, o.keep, math.min(n, MAX - o.sum))
  if o.keep == 1 and at >= o.kept then o.kept = at + 1 end
  finish_holding(o)
  return true
end

-- settle ends a hold, of which n hits become final, nil for all, and reports
-- whether there was such a hold.
local function settle(o, id, n)
  if o.row.finish then return o.row.finish(o.plain, id) end
  if not live_hold(o, id) then return false end
  begin_holding(o)
  local s = find_hold(o, id)
  local _, at, _, _, keep, hits = hold_at(o, s)
  remove_hold(o, s)
  if keep == 1 and at + 1 == o.kept then o.kept = newest_hold(o) end
  n = n or hits
  local aged = o.row.aged
  local before = aged.forget and aged.count(o.base)
  if n > 0 then aged.book(o.base, math.min(at, o.now), o.now, math.min(n, MAX)) end
  if before and n > hits then aged.forget(o.base, before + hits) end
  finish_holding(o)
  return true
end

local function renew(o, id, till)
  if not o.most then return false end
  if o.row.renew then return o.row.renew(o.plain, id, till) end
  local s = live_hold(o, id)
  local ends, at, _, keep, hits
  if s then ends, at, _, _, keep, hits = hold_at(o, s) end
  if not s or ends == at then return false end -- a reservation is not renewed
  begin_holding(o)
  remove_hold(o, find_hold(o, id))
  insert_hold(o, till, at, id, keep, hits)
  finish_holding(o)
  return true
end

-- The functions of a row, for any form of the state.
local function look(o, n)
  if o.held then return look_holding(o, n) end
  return o.row.look(o.plain, n)
end

local function add(o, n)
  if not o.held and not o.holds then return o.row.add(o.plain, n) end
  begin_holding(o)
  o.row.aged.add(o.base, n)
  finish_holding(o)
end

local function sub(o, n)
  if not o.held then return o.row.sub(o.plain, n) end
  begin_holding(o)
  o.row.aged.sub(o.base, n)
  finish_holding(o)
end

local function sub_at(o, at, n)
  local plain = o.plain
  local groups = plain and o.kind == 1 and (plain.group > 1 or plain.excess > 0)
  if not o.held and not groups then return o.row.sub_at(plain, at, n) end
  begin_holding(o)
  o.row.aged.sub_at(o.base, at, n)
  finish_holding(o)
end

local function expires(o)
  if o.held then return expires_holding(o) end
  return o.row.expires(o.plain)
end

local function save(o)
  if not o.held then return o.row.save(o.plain) end
  local list = o.first > 1 and cut(o.list, o.first, behind(o) - 1) or o.list -- there it has nothing else
  return pk('<BBBI2I7I7I7', 1, 12, o.kind, o.count, o.sum, o.seen, o.kept) .. list .. (o.row.aged.save(o.base) or ''),
    lasts(o)
end
