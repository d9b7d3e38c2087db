-- Most calls with one sliding limit need only the fixed part of its state:
-- nothing has left the window, and the hits fit into the newest group, or the
-- date of the oldest group is the wait. Others are the first of their key. This file
-- decides those calls. For all others the rest of the program decides.
--
-- A sliding key lives up to an eighth of the window longer than its state: until
-- a multiple of that, so that most hits need not move its expiry.
do
  if #head >= 39 then
    local kind, newest, oldest, fill, group = up('<I4I7I7I7I7', head) -- the version, 256 times the kind, 65536 times the groups
    local at = newest > now and newest or now
    local used = (kind - 65793) / 65536 * group + fill
    if kind % 65536 == 257 and group == its_size and oldest > at - its_w and used < MAX then
      local over = used - (its_quota - its_n)
      if its_n > 0 and over > 0 then
        if its_ask ~= RECORD and (its_n > its_quota or over <= group) then
          local wait = its_n > its_quota and NEVER or oldest + its_w - at
          return decided(used, used, wait, newest + its_w - at)
        end
      elseif its_ask == LOOK then
        return decided(used, used, 0, newest + its_w - at)
      elseif fill + its_n <= group then
        call('SETRANGE', key, '4', pk('<I7I7I7', at, kind > 65793 and oldest or at, fill + its_n))
        local tick = at - at % its_step
        if newest < tick then
          local ms = tick + its_step + its_w - now + 999
          call('PEXPIRE', key, (ms - ms % 1000) / 1000 + slack)
        end
        return decided(used + its_n, used, 0, its_w)
      end
    end
  elseif state == false and its_ask ~= LOOK and its_n <= its_size and its_n <= its_quota then
    local ms = its_step - now % its_step + its_w + 999
    local v = pk('<BBI2I7I7I7I7I7', 1, 1, 1, now, now, its_n, its_size, 0)
    call('SET', key, v, 'PX', (ms - ms % 1000) / 1000 + slack)
    return decided(its_n, 0, 0, its_w)
  end
end
