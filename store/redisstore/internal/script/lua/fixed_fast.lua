-- Most calls with one fixed window find it live, or start it. This file decides
-- those that count nothing, count without passing MAX, or are denied. For all
-- others the rest of the program decides.
do
  if state and #state == 16 then
    local version, kind, mark, used = up('<BBI7I7', state)
    local at = mark > now and mark or now
    local till = mark + its_w
    if version == 1 and kind == 3 and at < till and used + its_n <= MAX then
      if its_ask ~= RECORD and its_n > 0 and used + its_n > its_quota then
        return decided(used, used, its_n > its_quota and NEVER or till - at, till - at)
      end
      if its_ask == LOOK then
        return decided(used, used, 0, till - at)
      end
      call('SETRANGE', KEYS[first], '9', pk('<I7', used + its_n))
      return decided(used + its_n, used, 0, till - at)
    end
  elseif not state and its_ask ~= LOOK and its_n <= its_quota and its_n <= MAX then
    call('SET', KEYS[first], pk('<BBI7I7', 1, 3, now, its_n), 'PX', floor((its_w + 999) / 1000) + slack)
    return decided(its_n, 0, 0, its_w)
  end
end
