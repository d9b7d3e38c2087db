  waited = waited or waiting
else
  reply = decide(args, first, total)
end
