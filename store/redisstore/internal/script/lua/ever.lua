-- A window without an end. State: version, kind, the hits.
local function look_ever(o, n)
  local used = o.used
  if n == 0 or used <= o.quota - n then return used, 0 end
  return used, NEVER
end

local function add_ever(o, n)
  o.used = math.min(o.used + n, MAX)
end

local function expires_ever(o)
  return o.used > 0 and NEVER or 0
end

local function save_ever(o)
  if o.used == 0 then return nil end
  return pk('<BBI7', 1, 10, o.used), NEVER
end

local function open_ever(v, i, at)
  local quota
  quota, p = up('<I7', args, p)
  return {now = at, quota = quota, used = v and up('<I7', v, i + 2) or 0}
end

kinds[10] = {open = open_ever, look = look_ever, add = add_ever, save = save_ever, expires = expires_ever}
