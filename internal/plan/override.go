package plan

import (
	"slices"

	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// overrides are the limits of certain keys of one rule, ready for use. It is immutable.
type overrides struct {
	of     *override.Rule
	shapes []shape
	limits []*window.Compiled // by index in of.Limits; nil: not usable, or one of too many
	base   window.Limit
}

// shape is an [override.Shape] whose attributes are positions in `per`.
type shape struct {
	*override.Shape
	per []int
	key bool // they are those of the rule's own keys, in the same order
}

// maxLimits is how many limits of a rule are kept compiled. The others are compiled for each decision.
const maxLimits = 10_000

// CanOverride reports whether keys of r can have limits of their own.
func CanOverride(r *rule.Rule) bool {
	return r.Kind() == rule.KindLimit && r.Measure != window.Distinct
}

// OverrideLimit returns the limit of rule i with what l says. The error is a fault.List about quota or window.burst.
func OverrideLimit(rules *ruleset.Compiled, i int, l override.Limit) (*window.Compiled, error) {
	base := *rules.AnyLimit(i).Limit
	return compileOverride(&base, l)
}

func compileOverride(base *window.Limit, l override.Limit) (*window.Compiled, error) {
	limit := *base
	limit.Quota, limit.Highest = l.Quota, 0 // a key of its own, which is counted under no other quota
	if l.Burst > 0 {
		limit.Window.Burst = l.Burst
	}
	return window.Compile(limit)
}

// bind returns o, of rule i of rules, whose keys have n attributes, ready for use. It returns nil if
// none of o concerns the rule as it is. It uses what old has compiled.
func bind(rules *ruleset.Compiled, i, n int, o *override.Rule, old *overrides) *overrides {
	b := &overrides{of: o, base: *rules.AnyLimit(i).Limit, limits: make([]*window.Compiled, min(len(o.Limits), maxLimits))}
	for _, s := range o.Shapes {
		to := shape{Shape: s, key: len(s.Attributes) == n}
		for k, name := range s.Attributes {
			at := rules.Per(i, name)
			to.key = to.key && at == k
			to.per = append(to.per, at)
		}
		if !slices.Contains(to.per, -1) {
			b.shapes = append(b.shapes, to)
		}
	}
	if len(b.shapes) == 0 {
		return nil
	}
	for k := range b.limits {
		if old != nil && k < len(old.limits) && old.base == b.base && old.of.Limits[k] == o.Limits[k] {
			b.limits[k] = old.limits[k]
			continue
		}
		b.limits[k], _ = compileOverride(&b.base, o.Limits[k]) // an invalid one has no effect: the rule has changed
	}
	return b
}

// limit returns the limit of a key that has one of its own under rule i of rules, or nil. scratch is
// memory for keys, which limit may append to and returns.
func (o *overrides) limit(rules *ruleset.Compiled, i int, key []byte, values []string, scratch []byte) (*window.Compiled, []byte) {
	for k := range o.shapes {
		s := &o.shapes[k]
		part := key
		if !s.key {
			from := len(scratch)
			for _, at := range s.per {
				scratch, _ = rules.AppendPart(scratch, i, at, values)
			}
			part = scratch[from:]
			scratch = scratch[:from]
		}
		n, ok := s.Get(part)
		switch {
		case !ok:
		case int(n) < len(o.limits):
			if l := o.limits[n]; l != nil {
				return l, scratch
			}
		default:
			if l, err := compileOverride(&o.base, o.of.Limits[n]); err == nil {
				return l, scratch
			}
		}
	}
	return nil, scratch
}
