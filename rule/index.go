package rule

// index finds the rules that a request can match at all.
type index struct {
	others []int32 // rules without an equality condition
	probes []probe
}

// probe finds the rules that ask for equality on one attribute.
type probe struct {
	part
	rules map[string][]int32 // by the value, ascending
	empty bool               // one of the values is ""
}

// asked is one value that a rule can ask of an attribute.
type asked struct {
	part
	value string
}

// newIndex puts each rule under one of its equality conditions, the one whose
// values are asked for by the fewest rules: of `action: post` and `user: ann`
// most often the second.
func newIndex(rules []compiled) index {
	popular := make(map[asked]int)
	for i := range rules {
		if rules[i].Mode == Off {
			continue
		}
		for _, w := range rules[i].when {
			for _, v := range equals(w.test) {
				popular[asked{w.part, v}]++
			}
		}
	}
	var x index
	at := make(map[part]int)
	for i := range rules {
		if rules[i].Mode == Off {
			continue
		}
		r := &rules[i]
		r.indexed = -1
		best := selective(r.when, popular)
		if best < 0 {
			x.others = append(x.others, int32(i))
			continue
		}
		w := r.when[best]
		if _, ok := w.test.(equal); ok {
			r.indexed = best
		}
		n, ok := at[w.part]
		if !ok {
			n, at[w.part] = len(x.probes), len(x.probes)
			x.probes = append(x.probes, probe{part: w.part, rules: make(map[string][]int32)})
		}
		x.probes[n].add(int32(i), equals(w.test))
	}
	return x
}

func (p *probe) add(rule int32, values []string) {
	for _, v := range values {
		p.empty = p.empty || v == ""
		list := p.rules[v]
		if len(list) == 0 || list[len(list)-1] != rule { // a value may be asked twice
			p.rules[v] = append(list, rule)
		}
	}
}

// selective is which condition of equality has the most popular value that is
// the least so; -1 without one.
func selective(when []condition, popular map[asked]int) int {
	best, least := -1, 0
	for i, w := range when {
		values := equals(w.test)
		if values == nil {
			continue
		}
		most := 0
		for _, v := range values {
			most = max(most, popular[asked{w.part, v}])
		}
		if best < 0 || most < least {
			best, least = i, most
		}
	}
	return best
}

// equals are the values outside of which t cannot hold; nil where it is not a
// test of equality.
func equals(t Test) []string {
	switch t := t.(type) {
	case equal:
		return t.values
	case all:
		var fewest []string
		for _, part := range t {
			if values := equals(part); values != nil && (fewest == nil || len(values) < len(fewest)) {
				fewest = values
			}
		}
		return fewest
	}
	return nil
}
