-- The programs run inside Redis, whose Lua is 5.1 with these globals.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV", "struct", "bit", "cjson"}

-- head.lua names all constants and functions; most programs need some of them.
ignore = {"211/[A-Z]+", "211/up", "211/pk", "211/cut", "211/floor", "211/total", "231/total", "212/total"}

-- The functions for ops of common kinds get the argument of a call, which has a name of
-- its own in a program for one call. A run keeps the argument that it read last; a program
-- for one call is the same file, has one argument, and reads it because this is nil.
files["common.lua"] = {ignore = {"431/args", "311/known", "321/known"}}

-- The loop of a run has what each call needs in locals of its own, which are faster.
files["common_run.lua"] = {ignore = {"431/call", "431/KEYS", "431/all", "431/numbers", "431/now"}}
