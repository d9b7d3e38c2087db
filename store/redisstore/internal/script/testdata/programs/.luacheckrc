-- The programs run inside Redis, whose Lua is 5.1 with these globals.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV", "struct", "bit", "cjson"}

-- head.lua names all constants and functions; most programs need some of them.
ignore = {"211/[A-Z]+", "211/up", "211/pk", "211/cut", "211/floor", "211/total", "231/total"}
