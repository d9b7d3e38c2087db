-- Most calls with one fixed window find it live, or start it. This file decides
-- those that count nothing, count without passing MAX, or are denied. For all
-- others the rest of the program decides.
local state = try('GET', KEYS[first])
do
  if known ~= args then
    _, ask, n, quota, w = up('<BBI7I7I7', args, p)
    known = args
  end
  if state and #state == 16 then
    local version, kind, mark, used = up('<BBI7I7', state)
    local at = mark > now and mark or now
    local till = mark + w
    if version == 1 and kind == 3 and at < till and used + n <= MAX then
      if ask ~= RECORD and n > 0 and used + n > quota then
        return pk('<BI7I7I7I7I7', DONE, now, used, used, n > quota and NEVER or till - at, till - at)
      end
      if ask == LOOK then return pk('<BI7I7I7I7I7', DONE, now, used, used, 0, till - at) end
      call('SETRANGE', KEYS[first], '9', pk('<I7', used + n))
      return pk('<BI7I7I7I7I7', DONE, now, used + n, used, 0, till - at)
    end
  elseif not state and ask ~= LOOK and n <= quota and n <= MAX then
    call('SET', KEYS[first], pk('<BBI7I7', 1, 3, now, n), 'PX', floor((w + 999) / 1000) + slack)
    return pk('<BI7I7I7I7I7', DONE, now, n, 0, 0, w)
  end
end
