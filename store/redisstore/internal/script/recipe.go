package script

// A recipe names the program for one sort of call. A server makes the functions
// of a script anew at each call, so a program has few: measured, all kinds of
// windows in one flat program cost 5 µs a call. The programs are
//
//   - one for calls with one op of a kind, and one for calls with several ops of
//     one kind, each with and without refunds;
//   - for sliding and fixed windows and buckets also one that decides common calls
//     by a few bytes of the states, and one for several ops of these kinds;
//   - one for calls with ops about holds or bans, of all kinds, which decides common
//     takes by what stands first in the state;
//   - mixed ones for all other calls: ops of several kinds, and limits after a
//     count;
//   - for each of them without refunds one that decides a run: several steps, each
//     as it would be decided alone.
type recipe struct {
	kind   *kind // nil: mixed
	many   bool  // several ops
	fast   bool  // decides common calls first
	refund bool  // some ops are refunds; never with fast
	around bool  // some ops are about holds or bans; only with fast and run
	run    bool  // decides a run of independent steps; never with refund
}

// name returns the program's name, which is the name of its golden file too.
func (r recipe) name() string {
	name := "mixed"
	if r.kind != nil {
		name = r.kind.lua
	}
	switch {
	case r.around:
		name = "around"
	case r.many:
		name += "_many"
	default:
		name += "_one"
	}
	switch {
	case r.around: // always fast
	case r.fast:
		name += "_fast"
	case r.refund:
		name += "_refund"
	}
	if r.run {
		name += "_run"
	}
	return name
}

// The bits of an index below the kind's code. There is none for fast and refund
// together. The mixed program for one op that is fast is the one around.
const (
	withMany = 1 << iota
	withFast
	withRefund
	withRun
	perKind
)

// index returns the program's place in a table of all of them.
func (r recipe) index() int { return recipeIndex(r.kind, r.many, r.fast, r.refund, r.run) }

// recipeIndex returns the index of a recipe. A recipe takes longer to copy than this
// function takes, because its fields have just been written one by one.
func recipeIndex(k *kind, many, fast, refund, run bool) int {
	i := 0
	if k != nil {
		i = perKind * int(k.code)
	}
	if many {
		i |= withMany
	}
	if fast {
		i |= withFast
	}
	if refund {
		i |= withRefund
	}
	if run {
		i |= withRun
	}
	return i
}

// recipeAt returns the recipe that has an index.
func recipeAt(i int) recipe {
	r := recipe{many: i&withMany != 0, fast: i&withFast != 0, refund: i&withRefund != 0, run: i&withRun != 0}
	if code := i / perKind; code > 0 {
		r.kind = &kinds[code-1]
	}
	r.around = r.kind == nil && r.fast && !r.many
	return r
}

// around is the recipe of calls with ops about holds or bans.
var around = recipe{around: true, fast: true}

// recipes returns all recipes, of every program that can be needed.
func recipes() []recipe {
	var all []recipe
	for _, many := range []bool{false, true} {
		all = append(all, recipe{many: many}, recipe{many: many, refund: true})
		if many {
			all = append(all, recipe{many: true, fast: true})
		}
		for i := range kinds {
			k := &kinds[i]
			if k.wraps || k.around {
				continue // always mixed, or around
			}
			all = append(all, recipe{kind: k, many: many}, recipe{kind: k, many: many, refund: true})
			if k.fast && !many || k.fastMany {
				all = append(all, recipe{kind: k, many: many, fast: true})
			}
		}
	}
	for _, r := range all {
		if !r.refund {
			r.run = true
			all = append(all, r)
		}
	}
	return append(all, around, recipe{around: true, fast: true, run: true})
}
