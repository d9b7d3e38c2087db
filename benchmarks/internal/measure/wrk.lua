-- The requests of the benchmarks, for users in turn. Prints calls, microseconds, the 99th
-- percentile and failed calls.
local n = 0
local function body()
  n = n + 1
  return '{"attributes":{"action":"post","user":"' .. n % 100000 .. '"}}'
end
local function post(path, text)
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, text)
end
local function browse(connection)
  n = n + 1
  return wrk.format("GET", "/rule/browse?action=post&user=" .. n % 100000, {["Connection"] = connection})
end
local requests = {
  take = function() return post("/v1/take", body()) end,
  check = function() return post("/v1/check", body()) end,
  batch = function()
    local all = {}
    for i = 1, 100 do all[i] = body() end
    return post("/v1/batch", '{"requests":[' .. table.concat(all, ",") .. "]}")
  end,
  browse = function() return browse("keep-alive") end,
  close = function() return browse("close") end,
}
init = function(args) request = requests[args[1]] end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("%d %d %d %d\n", summary.requests, summary.duration, latency:percentile(99),
    e.status + e.timeout + e.read + e.write + e.connect))
end
