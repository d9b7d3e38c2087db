-- Most calls with one fixed window find it live, or start it. This file decides
-- those that count nothing, count without passing MAX, or are denied. For all
-- others the rest of the program decides.
do
  if state and #state == 16 then
    local kind, mark, used = up('<I2I7I7', state) -- the version, and 256 times the kind
    local at = mark > now and mark or now
    local till = mark + its_w
    if kind == 769 and at < till and used + its_n <= MAX then
      if its_ask ~= RECORD and its_n > 0 and used + its_n > its_quota then
        return decided(used, used, its_n > its_quota and NEVER or till - at, till - at)
      end
      if its_ask == LOOK then
        return decided(used, used, 0, till - at)
      end
      call('SETRANGE', key, '9', pk('<I7', used + its_n))
      return decided(used + its_n, used, 0, till - at)
    end
  elseif not state and its_ask ~= LOOK and its_n <= its_quota and its_n <= MAX then
    local ms = its_w + 999
    call('SET', key, pk('<I2I7I7', 769, now, its_n), 'PX', (ms - ms % 1000) / 1000 + slack)
    return decided(its_n, 0, 0, its_w)
  end
end
