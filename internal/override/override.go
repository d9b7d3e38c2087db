// Package override has the limits of certain keys that take the place of the limits in the rules.
// A [Set] is a snapshot: a decision uses one for all its rules. The package is pure: it has no clock, no lock
// and no IO, so a set has no instants; whoever makes it leaves out what has ended.
package override

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Limit takes the place of a rule's quota. Its zero value denies.
type Limit struct {
	Quota int64
	Burst int64 // of a bucket; 0: that of the rule
}

// Set has the overrides by the name of their rule. It is immutable; the zero value has none.
type Set struct {
	rules map[string]*Rule
}

// Rule returns the overrides of the rule called name, or nil.
func (s *Set) Rule(name string) *Rule {
	if s == nil {
		return nil
	}
	return s.rules[name]
}

// All returns the rules that have overrides, by their names.
func (s *Set) All() iter.Seq2[string, *Rule] {
	if s == nil {
		return maps.All[map[string]*Rule](nil)
	}
	return maps.All(s.rules)
}

// Rule has the overrides of one rule. It is immutable.
type Rule struct {
	// Shapes has the keys, those with the most attributes first: they are the most specific.
	Shapes []*Shape

	// Limits has the limits that differ. Some may be in use no more.
	Limits []Limit
}

// Shape has the overrides whose keys have the same attributes. It is immutable.
type Shape struct {
	Attributes []string // sorted

	n      int
	shards []map[string]uint32 // by the hash of the key: indexes of Rule.Limits
}

// Len returns the number of keys in s.
func (s *Shape) Len() int { return s.n }

// Get returns the index in [Rule.Limits] of the limit of a key: the values of the attributes, as
// ruleset.AppendKey joins them.
func (s *Shape) Get(key []byte) (limit uint32, ok bool) {
	limit, ok = s.shards[shardOf(key, len(s.shards))][string(key)]
	return limit, ok
}

// Keys calls each with every key, until it returns false.
func (s *Shape) Keys(each func(key string) bool) {
	for _, shard := range s.shards {
		for key := range shard {
			if !each(key) {
				return
			}
		}
	}
}

// few is how many keys a shape has in one shard. With more it has many shards, so that a change copies
// a small part of them.
const few, many = 512, 256 // 8 bits, see shardOf

// shardOf returns the shard of n, 1 or many, in which a key is, by its first and last bytes.
func shardOf[T string | []byte](key T, n int) int {
	if n == 1 {
		return 0
	}
	var first, last uint64
	if size := len(key); size >= 8 {
		first, last = word(key[:8]), word(key[size-8:])
	} else {
		for i := range size {
			first = first<<8 | uint64(key[i])
		}
	}
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return int((first*odd ^ last) * odd >> 56)
}

// word returns the first 8 bytes of key as a number.
func word[T string | []byte](key T) uint64 {
	_ = key[7]
	return uint64(key[0]) | uint64(key[1])<<8 | uint64(key[2])<<16 | uint64(key[3])<<24 |
		uint64(key[4])<<32 | uint64(key[5])<<40 | uint64(key[6])<<48 | uint64(key[7])<<56
}

// Change sets the limit of a key, or removes it.
type Change struct {
	Rule       string
	Attributes []string // sorted; kept
	Key        string   // as for [Shape.Get]; kept
	Limit      Limit
	Remove     bool
}

// With returns s with changes, of which later ones win. It shares with s what has not changed.
func (s *Set) With(changes []Change) *Set {
	e := editor{rules: map[string]*Rule{}, edited: map[*Rule]map[Limit]uint32{}, copied: map[*Shape]map[int]bool{}}
	if s != nil {
		for name, r := range s.rules {
			e.rules[name] = r
		}
	}
	for i := range changes {
		e.change(&changes[i])
	}
	for name, r := range e.rules {
		if e.edited[r] == nil {
			continue
		}
		r.Shapes = slices.DeleteFunc(r.Shapes, func(s *Shape) bool { return s.n == 0 })
		if len(r.Shapes) == 0 {
			delete(e.rules, name)
			continue
		}
		r.tidy()
	}
	return &Set{rules: e.rules}
}

// editor makes a set out of another one. What it has copied it may change.
type editor struct {
	rules  map[string]*Rule
	edited map[*Rule]map[Limit]uint32 // to the indexes of their limits
	copied map[*Shape]map[int]bool    // the shards of shapes
}

func (e *editor) change(c *Change) {
	r := e.rules[c.Rule]
	if e.edited[r] == nil {
		next := &Rule{}
		if r != nil {
			next.Shapes, next.Limits = slices.Clone(r.Shapes), slices.Clone(r.Limits)
		}
		e.rules[c.Rule], r = next, next
		e.edited[r] = make(map[Limit]uint32, len(r.Limits))
		for i, l := range r.Limits {
			e.edited[r][l] = uint32(i)
		}
	}
	at := slices.IndexFunc(r.Shapes, func(s *Shape) bool { return slices.Equal(s.Attributes, c.Attributes) })
	switch {
	case at < 0 && c.Remove:
		return
	case at < 0:
		at = e.add(r, c.Attributes)
	}
	s := r.Shapes[at]
	if e.copied[s] == nil {
		next := *s
		next.shards = slices.Clone(s.shards)
		s = &next
		r.Shapes[at] = s
		e.copied[s] = map[int]bool{}
	}
	if len(s.shards) == 1 && s.n >= few {
		e.split(s)
	}
	n := shardOf(c.Key, len(s.shards))
	if !e.copied[s][n] {
		e.copied[s][n] = true
		next := make(map[string]uint32, len(s.shards[n])+1)
		for key, limit := range s.shards[n] {
			next[key] = limit
		}
		s.shards[n] = next
	}
	shard := s.shards[n]
	before := len(shard)
	delete(shard, c.Key) // with the text of the key, which the caller may drop
	if !c.Remove {
		limit, ok := e.edited[r][c.Limit]
		if !ok {
			limit = uint32(len(r.Limits))
			r.Limits, e.edited[r][c.Limit] = append(r.Limits, c.Limit), limit
		}
		shard[c.Key] = limit
	}
	s.n += len(shard) - before
}

// add adds a shape and returns its index.
func (e *editor) add(r *Rule, attributes []string) int {
	at, _ := slices.BinarySearchFunc(r.Shapes, attributes, func(s *Shape, attributes []string) int {
		if d := len(attributes) - len(s.Attributes); d != 0 {
			return d
		}
		return strings.Compare(strings.Join(s.Attributes, "\x00"), strings.Join(attributes, "\x00"))
	})
	s := &Shape{Attributes: attributes, shards: make([]map[string]uint32, 1)}
	e.copied[s] = map[int]bool{}
	r.Shapes = slices.Insert(r.Shapes, at, s)
	return at
}

// split gives s many shards.
func (e *editor) split(s *Shape) {
	shards := make([]map[string]uint32, many)
	for n := range shards {
		shards[n] = map[string]uint32{}
		e.copied[s][n] = true
	}
	for key, limit := range s.shards[0] {
		shards[shardOf(key, many)][key] = limit
	}
	s.shards = shards
}

// tidy drops limits that no key has, when they are many. All indexes may change then.
func (r *Rule) tidy() {
	keys := 0
	for _, s := range r.Shapes {
		keys += s.n
	}
	if len(r.Limits) <= 2*keys+16 {
		return
	}
	index, limits := map[uint32]uint32{}, []Limit{}
	for at, s := range r.Shapes {
		next := &Shape{Attributes: s.Attributes, n: s.n, shards: make([]map[string]uint32, len(s.shards))}
		for n, shard := range s.shards {
			next.shards[n] = make(map[string]uint32, len(shard))
			for key, limit := range shard {
				to, ok := index[limit]
				if !ok {
					to = uint32(len(limits))
					index[limit], limits = to, append(limits, r.Limits[limit])
				}
				next.shards[n][key] = to
			}
		}
		r.Shapes[at] = next
	}
	r.Limits = limits
}
