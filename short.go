package weir

import (
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/store"
)

// short is the memory of a request that matches a few plain rules ([plan.Prepared]) and
// is decided in memory, as most requests of most programs are. It needs no outage policy
// and none of what holds, verdicts and bans need. FuzzShort compares it with the general
// way. Shorts are pooled.
type short struct {
	values  [shortValues]string // of the request
	matched [shortRules]int
	ops     [shortRules]store.Op // which refer to nothing of the request but keys
	keys    [shortKeys]byte
}

const (
	shortRules = 8   // the most rules that match
	shortKeys  = 128 // bytes of the keys
)

// plan sets an op for each rule that matches values. It reports false if there are none or
// many, or if one of them is not plain.
func (s *short) plan(rules *plan.Rules, matched []int, values []string, hits int64) bool {
	if len(matched) == 0 || len(matched) > shortRules {
		return false
	}
	keys := s.keys[:0]
	for n, i := range matched {
		p, op := rules.Prepared(i), &s.ops[n]
		switch {
		case !p.Plain:
			return false
		case p.SameKey && n > 0 && matched[n-1] == i-1:
			op.Key = s.ops[n-1].Key
		case rules.KeyLen(i, values)+ruleset.KeyOverhead > cap(keys)-len(keys):
			return false
		default:
			from := len(keys)
			keys = rules.AppendKey(keys, i, values)
			op.Key = keys[from:]
		}
		op.Space, op.Limit, op.N, op.Role = p.Space, p.Limit, hits, p.Role
	}
	return true
}
