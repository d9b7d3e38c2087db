package plan

import (
	"slices"

	"github.com/weirhq/weir/window"
)

// OfKey returns the values of the attributes of a key under rule i, by the rule's `per`, and
// the key's limit. known is false if its quota depends on something else: then the limit has
// another quota. ok is false for bytes that are no key of the rule.
func (r *Rules) OfKey(i int, key []byte) (of []string, limit *window.Compiled, known, ok bool) {
	of, values, ok := r.Values(i, key)
	if !ok {
		return nil, nil, false, false
	}
	if o := r.prepared[i].overrides; o != nil {
		if limit, _ = o.limit(r.Compiled, i, key, values, nil); limit != nil {
			return of, limit, true, true
		}
	}
	if r.QuotaInKey(i) {
		limit, _ = r.LimitOf(i, values, nil)
	}
	if limit == nil {
		return of, r.AnyLimit(i), false, true
	}
	return of, limit, true, true
}

// QuotaInKey reports whether the quota of a key of rule i depends on nothing but the key.
func (r *Rules) QuotaInKey(i int) bool {
	q := r.Rule(i).Quota
	return q == nil || q.Attribute() == "" || slices.Contains(r.Rule(i).Per, q.Attribute())
}
