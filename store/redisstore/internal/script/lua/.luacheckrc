-- The programs run inside Redis, whose Lua is 5.1 with these globals.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV", "struct", "bit", "cjson"}

-- head.lua names all constants and functions; most programs need some of them.
ignore = {"211/[A-Z]+", "211/up", "211/pk", "211/cut", "211/floor", "211/total", "231/total", "212/total"}

-- A run keeps the argument that it read last; a program for one step is the same
-- file, has one argument, and reads it because these are nil.
files["sliding_many_fast.lua"] = {ignore = {"311/known", "321/known", "311/few_known", "321/few_known"}}

-- The functions for ops of several kinds get the argument of a step, which has a name of
-- its own in a program for one step.
files["mixed_many_fast.lua"] = {ignore = {"431/args"}}

-- The loop of a run has what each step needs in locals of its own, which are faster.
for _, name in ipairs{"bucket_one", "fixed_one", "sliding_one", "sliding_many", "mixed_many"} do
  files[name .. "_fast_run.lua"] = {ignore = {"431/call", "431/KEYS", "431/all", "431/numbers", "431/now"}}
end
