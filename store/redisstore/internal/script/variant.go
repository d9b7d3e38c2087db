package script

// A variant names the program for one sort of call. A server makes the functions
// of a script anew at each call, so a program has few: measured, all kinds of
// windows in one flat program cost 5 µs a call. The programs are
//
//   - one for calls with one op of a kind, and one for calls with several ops of
//     one kind, each with and without refunds;
//   - one for calls whose ops are sliding or fixed windows or buckets, which decides
//     common takes and checks by a few bytes of the states;
//   - one for calls with ops about holds or bans, of all kinds;
//   - mixed ones for all other calls: ops of several kinds, and limits after a
//     count;
//   - for each of them without refunds one that decides a run: several steps, each
//     as it would be decided alone.
type variant struct {
	kind   *kind // nil: mixed
	many   bool  // several ops
	common bool  // decides common calls first; only with many, and for one op too
	refund bool  // some ops are refunds; never with common
	around bool  // some ops are about holds or bans; only with run
	run    bool  // decides a run of independent steps; never with refund
}

// The bits of an index below the kind's code. The program around has the bits of a mixed
// one for one op that is common, which there is not.
const (
	withMany = 1 << iota
	withCommon
	withRefund
	withRun
	perKind
)

// index returns the program's place in a table of all of them.
func (v variant) index() int {
	return indexOf(v.kind, v.many, v.common || v.around, v.refund, v.run)
}

// indexOf returns the index of a variant. A variant takes longer to copy than this
// function takes, because its fields have just been written one by one.
func indexOf(k *kind, many, common, refund, run bool) int {
	i := 0
	if k != nil {
		i = perKind * int(k.code)
	}
	if many {
		i |= withMany
	}
	if common {
		i |= withCommon
	}
	if refund {
		i |= withRefund
	}
	if run {
		i |= withRun
	}
	return i
}

// variantAt returns the variant that has an index.
func variantAt(i int) variant {
	v := variant{many: i&withMany != 0, common: i&withCommon != 0, refund: i&withRefund != 0, run: i&withRun != 0}
	if code := i / perKind; code > 0 {
		v.kind = &kinds[code-1]
	}
	if v.common && !v.many {
		v.common, v.around = false, true
	}
	return v
}

var (
	common = variant{many: true, common: true} // of calls that are mostly common
	around = variant{around: true}             // of calls with ops about holds or bans
)

// variants returns all variants, of every program that can be needed.
func variants() []variant {
	all := []variant{common, around}
	for _, many := range []bool{false, true} {
		all = append(all, variant{many: many}, variant{many: many, refund: true})
		for i := range kinds {
			k := &kinds[i]
			if k.wraps || k.around {
				continue // always mixed, or around
			}
			all = append(all, variant{kind: k, many: many}, variant{kind: k, many: many, refund: true})
		}
	}
	for _, v := range all {
		if !v.refund {
			v.run = true
			all = append(all, v)
		}
	}
	return all
}
