package main

import (
	"cmp"
	"slices"
)

// most returns the most hits that were certainly admitted in one window (t-length, t], over all t.
// It knows nothing of leases. All windows that end at a hit are looked at, so all windows are.
func most(hits []admission, length int64) int {
	ends := slices.Clone(hits)
	slices.SortFunc(ends, func(a, b admission) int { return cmp.Compare(a.to, b.to) })
	order := make([]int, len(ends)) // of their beginnings
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ends[a].from, ends[b].from) })
	const (
		before = iota
		inside
		left
	)
	state := make([]uint8, len(ends))
	n, top, next := 0, 0, 0
	for i, h := range ends {
		for ; next < len(order) && ends[order[next]].from <= h.to-length; next++ {
			if state[order[next]] == inside {
				n--
			}
			state[order[next]] = left
		}
		if state[i] == before {
			state[i] = inside
			n++
		}
		top = max(top, n)
	}
	return top
}

// seconds returns the hits in each of some lengths of time from start on, by their latest instants.
func seconds(hits []admission, start, length int64, n int) []int {
	per := make([]int, n)
	for _, h := range hits {
		if i := (h.to - start) / length; h.to >= start && i < int64(n) {
			per[i]++
		}
	}
	return per
}
