-- A call of which some ops are about holds or bans. It does the same as package
-- window in wrapper.go, and as the model in package storetest.
--
-- A key that is banned, or remembers strikes, has its own state around that
-- of the window: version, kind 13, strikes, the end of the last ban, its length; then
-- the window's state, if it has one. Without strikes the end is an instant from which on
-- no hits were dropped, and the length is 1: see window/ban.go. An op has it in noted. 128 is
-- added to the strikes if an undated window was refunded since the last one.
local FULL = 6 -- the status of a reply with flags
local LAST = MAX - 3153600000000000 -- the latest instant that counts as itself

-- What is asked of an op, besides what head.lua has.
local SETTLE, CANCEL, RENEW, SET, UNBAN, RESERVE, ONLY_LOOK, ALWAYS = 5, 6, 7, 8, 9, 10, 16, 17

-- The flags of an op: it counts when it is denied, names a hold, is no strike, was
-- certainly counted, is under a limit that bans, or holds, or keeps what ended; N is
-- all there is, or in a settle what was held; the limit holds, but in a window that
-- is not of places.
local COUNT_DENIED, NAMED, NO_STRIKE, SURE, BANS, HOLDS, KEEPS, ALL = 1, 2, 4, 8, 16, 32, 64, 128

local function has_flag(flags, flag)
  return floor(flags / flag) % 2 == 1
end

-- is_undated reports whether o's states note from when on no hits were dropped or
-- refunded: they do not tell if the hits of a take are still in them. Only the hits of
-- sliding windows without groups have dates of their own.
local function is_undated(o)
  local plain, dated = o.plain, function(part) return part.size == 1 end
  if o.most then return false end
  if o.kind == 6 then return not (dated(plain.base) and dated(plain.inner)) end
  return o.kind < 11 and not dated(plain or o.base)
end

-- note notes that no hits are dropped from now on, for a take with a receipt.
local function note(o)
  if o.id and o.strikes == 0 and not o.noted and is_undated(o) then o.noted = o.now end
end

local function banned(o)
  return o.strikes > 0 and o.ban_end > o.now
end

-- left returns how many strikes are not forgotten.
local function left(o)
  if o.now < o.ban_end then return o.strikes end
  return math.max(0, o.strikes - floor((o.now - o.ban_end) / o.forget))
end

local function answer(o, before, used, fits)
  local reset = expires(o)
  o.before, o.used, o.banned, o.held_now = before, used, 0, 0
  o.wait = fits == NEVER and NEVER or math.max(fits - o.now, 0)
  o.reset = reset == NEVER and NEVER or math.max(reset - o.now, 0)
end

-- answer_banned answers n hits, also 0 of them, with a denial, and nil to what asks
-- for no hits.
local function answer_banned(o, n)
  local used, fits = look(o, n or 0) -- of a state with nothing but holds
  o.before, o.used, o.banned, o.held_now, o.wait, o.reset = 0, used, 1, 0, 0, o.ban_end - o.now
  if n then o.wait = fits == NEVER and NEVER or math.max(o.ban_end, fits) - o.now end
end

-- done answers after the state was changed.
local function done(o, before, held)
  if o.strikes > 0 and left(o) == 0 then
    o.strikes, o.noted, o.refunded = 0, (o.refunded and o.now or o.ban_end - o.ban_length) + 1, false
  end
  if banned(o) then
    answer_banned(o)
    o.before = before
  else
    answer(o, before, (look(o, 0)), 0)
  end
  o.held_now, o.changed = held and 1 or 0, true
  o.s, o.till = save(o) -- which a further look needs
end

-- empty drops the hits that are final. Holds that are alive stay.
local function empty(o)
  if o.held and ended(o, o.now) < o.count then
    begin_holding(o)
    o.row.aged.empty(o.base)
    finish_holding(o)
  elseif o.kind == 11 and o.plain.count > 0 then
    o.plain.raw = nil -- which can have places that have ended
  else
    if o.plain and o.plain.set then call('UNLINK', o.plain.set, o.plain.hash) end
    anew(o)
  end
end

-- strike bans the key, because of n hits, or nil after a record.
local function strike(o, before, n)
  local count = math.min(left(o) + 1, 100)
  local d, most = o.ban_for, o.ban_most
  for _ = 2, count do
    if d >= most or o.factor < 2 then break end
    if d > floor(most / o.factor) then d = most else d = d * o.factor end
  end
  d = math.min(d, most)
  o.strikes, o.ban_end, o.ban_length, o.refunded = count, math.min(o.now + d, LAST), d, false
  empty(o)
  o.changed, o.s, o.till = true, save(o)
  answer_banned(o, n)
  o.before, o.struck = before, true
end

local function check(o, n)
  if banned(o) then return answer_banned(o, n) end
  local used, fits = look(o, n)
  answer(o, used, used, fits)
end

local function take(o)
  local n = o.n
  if banned(o) then return answer_banned(o, n) end
  local before, fits = look(o, n)
  if n == 0 or fits ~= 0 then
    if n > 0 and o.bans then return strike(o, before, n) end
    return answer(o, before, before, fits)
  end
  n = math.min(n, MAX)
  local held = o.id and o.most and hold(o, n, o.id, o.now, math.min(o.now + o.length, LAST))
  if not held then
    add(o, n)
    note(o)
  end
  done(o, before, held)
end

-- reserve holds n hits until an instant from which they count, see window/reserve.go, unless it only
-- checks. A limit that cannot reserve has no part. The wait of what is held is how long it is held.
local function reserve(o, checks)
  local n = o.n
  if n == 0 or o.part == 0 then
    check(o, 0)
    if n > 0 then o.wait = NEVER end
    return
  end
  local before, fits = look(o, n)
  local till, ends = math.min(o.now + o.length, LAST), o.row.ends
  if not o.id or till <= o.now then fits = NEVER end
  if fits ~= NEVER then
    if ends then
      ends = ends(o.held and o.base or o.plain)
      till = math.min(till, ends - 1)
      if till <= o.now then fits = math.max(fits, ends) end
    end
    local s = live_hold(o, o.id)
    if s then fits = math.max(fits, (hold_at(o, s))) end
  end
  if checks or fits ~= 0 then return answer(o, before, before, fits) end
  begin_holding(o)
  hold(o, n, o.id, till, till)
  done(o, before, true)
  o.wait = till - o.now
end

-- over reports whether a record of n hits passes the quota, for which a take would
-- wait until fits. The number of holds does not matter.
local function over(o, n, fits, from)
  if fits == 0 then return false end
  if o.kind == 11 then return from and o.plain.sum + n > o.plain.quota end
  return not o.held or not fits_holding(o, o.now, n)
end

-- record counts hits: of a take if takes is set.
local function record(o, from, till, no_strike, takes)
  local n = o.n
  if banned(o) then return answer_banned(o) end
  local before, fits = look(o, n)
  local has = n > 0 and from and o.id and o.most and live_hold(o, o.id)
  if n == 0 or has then
    answer(o, before, before, 0)
    o.held_now = has and 1 or 0
    return
  end
  if o.bans and not no_strike and over(o, n, fits, from and o.id) then return strike(o, before) end
  n = math.min(n, MAX)
  local held = from and o.id and o.most and till > o.now and hold(o, n, o.id, math.min(from, o.now), till)
  if not held then
    add(o, n)
    if takes then note(o) end
  end
  done(o, before, held)
end

-- count_denied counts the hits of a take that was denied. The op's own answer
-- stays; its wait becomes the one after what was counted now.
local function count_denied(o)
  local own = o.wait
  if not banned(o) then
    record(o, nil, nil, true)
  else
    local seen = o.held and o.seen or o.kind == 11 and o.plain.now or 0
    o.now = math.max(math.min(now, LAST), o.ban_end - o.ban_length, seen)
    if o.n > 0 then
      o.ban_end, o.changed = math.min(o.now + o.ban_length, LAST), true
      o.s, o.till = save(o)
    end
    answer_banned(o)
  end
  o.wait = own
  if own == 0 then return end
  local before, used, reset, is, held = o.before, o.used, o.reset, o.banned, o.held_now
  check(o, o.n)
  if o.wait == 0 then o.wait = own end
  o.before, o.used, o.reset, o.banned, o.held_now = before, used, reset, is, held
end

local function refund(o)
  local n, noted = o.n, o.strikes > 0 or o.noted
  if o.all then o.strikes, o.noted, o.refunded = 0, false, false end
  if banned(o) then return answer_banned(o) end
  local before = look(o, 0)
  if n == 0 then return answer(o, before, before, 0) end
  sub(o, o.held and math.min(n, MAX) or n)
  if o.strikes > 0 then
    o.refunded = o.refunded or is_undated(o)
  elseif noted then
    o.noted = o.now + 1
  end
  done(o, before, false)
end

-- finish settles, cancels or renews.
local function finish(o, ask)
  local before = look(o, 0)
  if o.id and ask == RENEW and renew(o, o.id, o.most and math.min(o.now + o.length, LAST)) or
    o.id and ask == CANCEL and settle(o, o.id, 0) or
    o.id and ask == SETTLE and settle(o, o.id, not o.all and o.n or nil) then
    return done(o, before, true)
  end
  if banned(o) then return answer_banned(o) end
  answer(o, before, before, 0)
end

-- set makes n the hits that count, unless the key is banned or has holds that are alive.
local function set(o)
  local n, before = o.n, look(o, 0)
  local held = o.held and ended(o, o.now) < o.count
  if banned(o) then
    answer_banned(o)
  elseif held then
    answer(o, before, before, 0)
  end
  if banned(o) or held then
    o.held_now = held and 1 or 0
    return
  end
  o.n = MAX
  refund(o)
  o.n = n
  record(o, nil, nil, true)
  o.before = before
end

-- unban ends the ban. The instant of the last strike stays, so a ban ends after it.
local function unban(o)
  local before = look(o, 0)
  if not banned(o) then return answer(o, before, before, 0) end
  local since = o.ban_end - o.ban_length
  o.ban_end = math.max(o.now, since + 1)
  o.ban_length = o.ban_end - since
  done(o, before, false)
end

local function give_back(o)
  if banned(o) then return answer_banned(o) end
  local before = look(o, 0)
  if lasts(o) <= o.now or o.strikes > 0 and o.from <= o.ban_end - o.ban_length or
    o.id and is_undated(o) and (o.refunded or o.strikes == 0 and not o.noted) or
    o.id and o.noted and o.from < o.noted then
    return answer(o, before, before, 0)
  end
  sub_at(o, o.from, math.min(o.n, MAX))
  done(o, before, false)
end

-- drop_note drops what is noted of a state without hits.
local function drop_note(o)
  if o.strikes > 0 and left(o) == 0 then o.strikes, o.refunded = 0, false end
  if o.noted and o.noted <= o.now then o.noted = false end
end

-- forget_strikes forgets the strikes of a limit that bans no more.
local function forget_strikes(o)
  if o.refunded and not o.bans then o.noted, o.refunded = o.now + 1, false end
end

-- open reads an op and its state v, which stands at the k-th key. It returns nil
-- if the state is not of the op's kind.
local function open(v, k)
  local o, flags = {strikes = 0, ban_end = 0, ban_length = 0, noted = false, now = math.min(now, LAST), held = false}
  o.kind, o.ask, flags, o.n, p = up('<BBBI7', args, p)
  if o.ask >= UP_TO then o.ask, o.up_to, p = o.ask - UP_TO, up('<I7', args, p) end
  if o.ask == RESERVE then o.least, o.part, o.length, o.most, p = up('<I7I7I7I2', args, p) end
  o.row, o.k = kinds[o.kind], k + 1
  o.denied, o.no_strike, o.sure = has_flag(flags, COUNT_DENIED), has_flag(flags, NO_STRIKE), has_flag(flags, SURE)
  o.bans, o.keep, o.all = has_flag(flags, BANS), has_flag(flags, KEEPS) and 1 or 0, has_flag(flags, ALL)
  if o.bans then
    o.ban_for, o.factor, o.ban_most, o.forget, p = up('<I7I7I7I7', args, p)
  end
  if has_flag(flags, HOLDS) then
    o.length, o.most, p = up('<I7I2', args, p)
    o.holds = o.kind ~= 11
  end
  if has_flag(flags, NAMED) then
    o.named = true
    o.id, o.from, o.till, p = up('<c12I7I7', args, p)
    if o.id == string.rep('\0', 12) then o.id = nil end
  end
  o.p, o.around = p, o.bans or o.holds
  local version, kind = 1, o.kind
  if v then version, kind = string.byte(v, 1, 2) end
  if version == 1 and kind == 13 then
    o.around = true
    local strikes, till, length = up('<BI7I7', v, 3)
    o.refunded, strikes = strikes >= 128, strikes % 128
    if strikes == 0 then
      o.noted = till
    elseif o.bans then
      o.strikes, o.ban_end, o.ban_length = strikes, till, length
      o.now = math.max(o.now, till - length)
    else
      o.noted = till - length + 1
    end
    v = #v > 17 and cut(v, 18)
    version, kind = 1, o.kind
    if v then version, kind = string.byte(v, 1, 2) end
  end
  if version ~= 1 then return nil end
  if kind == o.kind then
    o.plain = o.row.open(v, 1, o.now, o.k)
    o.plain.most = o.most
    o.now = o.plain.now
    forget_strikes(o)
    if lasts(o) <= o.now then
      if o.around then o.plain.raw = nil end
      drop_note(o)
    end
    return o
  end
  if kind ~= 12 or string.byte(v, 3) ~= o.kind or not o.row.aged then return nil end
  o.around, o.held = true, true
  local _
  _, _, _, o.count, o.sum, o.seen, o.kept, o.first = up('<BBBI2I7I7I7', v)
  o.now = math.max(o.now, o.seen)
  o.list = v
  local base = behind(o)
  o.base = o.row.aged.open(base <= #v and cut(v, base), o.now, o.seen)
  forget_strikes(o)
  local alive = o.count > 0 and last_end(o) > o.now
  if not alive and lasts(o) <= o.now then
    anew(o)
    drop_note(o)
  end
  return o
end

local ops, k = {}, first
for i = 1, total do
  local key = KEYS[k]
  local v = try('GET', key)
  if type(v) == 'table' then -- an error
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    return pk('<BI7I4I2', FOREIGN, now, k - first + 1, #v.err) .. v.err
  end
  if v then read = read + #v end
  local o = open(v, k)
  if not o then
    return pk('<BI7I4I2', BROKEN, now, k - first + 1, math.min(#v, 2)) .. cut(v, 1, 2)
  end
  if off then return pk('<BI7I2I7', CLOCK, now, i, off) end
  k = k + (o.row.keys or 1)
  ops[i], o.key = o, key
end

-- Ops that take up to what fits take what fits under all of them.
local fitting = NEVER -- more than any op asks for
for i = 1, total do
  local o = ops[i]
  if o.up_to and (o.ask == ENFORCE or o.ask == RESERVE) then
    check(o, 0)
    fitting = math.min(fitting, math.max(o.up_to - (banned(o) and o.up_to or o.used), 0))
  end
end
for i = 1, total do
  local o = ops[i]
  if o.up_to and o.ask ~= RESERVE then
    o.n = math.max(math.min(o.n, fitting), 1)
  elseif o.up_to and o.part > 0 then
    o.n = math.min(o.n, math.max((fitting - math.fmod(fitting, o.part)) / o.part, o.least))
  end
end

-- All of a take's enforcing ops are admitted, or none, and so are those of a reserve.
local admitted, found = true, false
for i = 1, total do
  local o = ops[i]
  if o.ask == ENFORCE and total > 1 then
    check(o, o.n)
    if o.wait ~= 0 then admitted = false end
  elseif o.ask == RESERVE and total > 1 then
    reserve(o, true)
    if o.wait ~= 0 then admitted = false end
  end
end
for i = 1, total do
  local o = ops[i]
  local ask = o.ask
  if ask == LOOK then
    check(o, o.n)
  elseif ask == RECORD then
    record(o, o.id and o.from, o.till, o.no_strike)
  elseif ask == REFUND then
    refund(o)
  elseif ask >= SETTLE and ask <= RENEW then
    finish(o, ask)
    found = found or ask == CANCEL and o.held_now == 1
  elseif ask == SET then
    set(o)
  elseif ask == UNBAN then
    unban(o)
  elseif ask == RESERVE then
    if admitted then reserve(o) end
  elseif ask == ALWAYS then
    record(o, now, o.most and now + o.length, false, true)
  elseif ask == ENFORCE and total == 1 then
    take(o)
    if o.denied and o.wait ~= 0 then count_denied(o) end
  else
    if ask ~= ENFORCE then check(o, o.n) end
    local denied = ask == ONLY_LOOK or o.wait ~= 0 or ask == ENFORCE and not admitted
    if not denied or o.wait ~= 0 and o.bans then take(o) end
    if denied and o.denied then count_denied(o) end
  end
end

local reply, denied, changed = {pk('<BI7', FULL, now)}, false, false
for i = 1, total do
  local o = ops[i]
  if o.ask == CANCEL and o.named and (found or o.sure) and o.held_now == 0 and not o.most and o.n > 0 then
    give_back(o)
  end
  local noted = o.noted and (not o.changed or o.s or o.noted > o.now)
  denied = denied or o.ask == ENFORCE and o.wait ~= 0
  if o.changed then
    changed = true
    local s, till = o.s or '', o.till or 0
    if o.strikes > 0 then
      local strikes = o.strikes + (o.refunded and 128 or 0)
      s = pk('<BBBI7I7', 1, 13, strikes, o.ban_end, o.ban_length) .. s
      till = math.max(till, math.min(o.ban_end + o.strikes * o.forget, MAX))
    elseif noted then
      s, till = pk('<BBBI7I7', 1, 13, 0, o.noted, 1) .. s, math.max(till, o.noted)
    end
    if s == '' then
      call('UNLINK', o.key)
    else
      local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
      call('SET', o.key, s, 'PX', ms)
      if o.plain and o.plain.set then
        call('PEXPIRE', o.plain.set, ms)
        call('PEXPIRE', o.plain.hash, ms)
      end
    end
  end
  local flags = o.held_now + 2 * o.banned + ((o.held or o.strikes > 0 or noted) and 4 or 0) + (o.struck and 8 or 0)
  reply[i + 1] = pk('<I7I7I7I7B', o.used, o.before, o.wait, o.reset, flags)
end
return table.concat(reply), denied and not changed
