-- The programs run inside Redis, whose Lua is 5.1 with these globals.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV", "struct", "bit", "cjson"}

-- The files that begin programs name all constants, functions and numbers; most programs need
-- some of them, and those without the fast path do not set it.
ignore = {"211/[A-Z]+", "211/up", "211/pk", "211/cut", "211/floor", "211/plan", "211/repeats", "211/total", "212/total", "221/fast", "231/total"}

-- The functions for ops get the argument of a call, which has its own name in a program
-- for one call. That program reads it because known is nil.
files["fast.lua"] = {ignore = {"311/known", "321/known"}}

-- The fast path of a batch has what each call needs in locals of its own, which are faster.
files["fast_batch.lua"] = {ignore = {"431/asked", "431/numbers", "431/writes"}}
