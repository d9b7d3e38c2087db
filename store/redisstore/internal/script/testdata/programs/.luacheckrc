-- The programs run inside Redis, whose Lua is 5.1 with these globals.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV", "struct", "bit", "cjson"}

-- head.lua names all constants and functions; most programs need some of them.
ignore = {"211/[A-Z]+", "211/up", "211/pk", "211/cut", "211/floor", "211/total", "231/total"}

-- A run keeps the argument that it read last; a program for one step is the same
-- file, has one argument, and reads it because known is nil.
for _, kind in ipairs{"bucket", "fixed", "sliding"} do
  files[kind .. "_one_fast.lua"] = {ignore = {"311/known", "321/known"}}
end
