package answer

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Select returns the index of the rule called name or, if all is set, those of all rules. The error wraps
// [weir.ErrUnknownRule].
func Select(set *rule.Set, name string, all bool) ([]int, error) {
	if i, ok := set.Find(name); ok && !all {
		return []int{i}, nil
	}
	rules, names := make([]int, set.Len()), make([]string, set.Len())
	for i := range rules {
		rules[i], names[i] = i, set.Rule(i).Name
	}
	if !all {
		return nil, fmt.Errorf("%w: %.64q%s", weir.ErrUnknownRule, name, fault.DidYouMean(name, names))
	}
	return rules, nil
}

// NoTops returns the problem of calls about top keys and denials in a service that keeps none.
func NoTops() *Problem {
	return &Problem{Status: http.StatusNotFound, Detail: "the service keeps no top keys and denials: it runs with --top-keys 0"}
}

// Network returns n as "v4/24 v6/64".
func Network(n rule.Network) string {
	var parts []string
	if n.V4 > 0 {
		parts = append(parts, fmt.Sprintf("v4/%d", n.V4))
	}
	if n.V6 > 0 {
		parts = append(parts, fmt.Sprintf("v6/%d", n.V6))
	}
	return strings.Join(parts, " ")
}

// AppendRule appends r with the keys of the rules file, without those at their
// default.
func AppendRule(b []byte, r *rule.Rule) []byte {
	b = jsontext.AppendText(append(b, `{"name":`...), r.Name)
	b = jsontext.AppendText(append(b, `,"kind":`...), r.Kind().String())
	if len(r.When) > 0 {
		b = append(b, `,"when":[`...)
		for i, c := range r.When {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsontext.AppendText(b, c.Attribute+" "+c.Test.String())
		}
		b = append(b, ']')
	}
	if len(r.Per) > 0 {
		b = jsontext.AppendTexts(append(b, `,"per":`...), r.Per)
		for i, name := range slices.Sorted(maps.Keys(r.Networks)) {
			if i == 0 {
				b = append(b, `,"networks":{`...)
			} else {
				b = append(b, ',')
			}
			b = jsontext.AppendText(append(jsontext.AppendText(b, name), ':'), Network(r.Networks[name]))
		}
		if len(r.Networks) > 0 {
			b = append(b, '}')
		}
	}
	if r.Measure != window.Count {
		b = jsontext.AppendText(append(b, ','), r.Measure.String())
		b = jsontext.AppendText(append(b, ':'), r.Of)
	}
	if r.Quota != nil {
		b = appendQuota(append(b, `,"limit":`...), r.Quota)
	}
	if r.Near > 0 {
		b = append(strconv.AppendInt(append(b, `,"near":"`...), int64(r.Near), 10), `%"`...)
	}
	if r.Trigger > 0 {
		b = strconv.AppendInt(append(b, `,"trigger":`...), r.Trigger, 10)
	}
	if r.Kind() != rule.KindVerdict {
		b = jsontext.AppendText(append(b, `,"window":`...), r.Window.String())
	}
	b = appendHolding(b, r)
	if r.Then != "" {
		b = jsontext.AppendText(append(b, `,"then":`...), r.Then)
	}
	if r.CountRest {
		b = append(b, `,"rest":"count"`...)
	}
	if len(r.Feedback) > 0 {
		b = append(appendNumbers(append(b, `,"feedback":{`...), r.Feedback), '}')
	}
	if r.Mode != rule.Enforce {
		b = jsontext.AppendText(append(b, `,"mode":`...), r.Mode.String())
	}
	return append(b, '}')
}

// appendHolding appends the holds and bans of r.
func appendHolding(b []byte, r *rule.Rule) []byte {
	if r.Hold > 0 {
		b = jsontext.AppendText(append(b, `,"hold":`...), window.Length(r.Hold))
	}
	if r.Release {
		b = append(b, `,"unsettled":"release"`...)
	}
	if r.MaxHolds > 0 {
		b = strconv.AppendInt(append(b, `,"max_holds":`...), int64(r.MaxHolds), 10)
	}
	if r.Ban.For == 0 {
		return b
	}
	b = jsontext.AppendText(append(b, `,"ban":{"for":`...), window.Length(r.Ban.For))
	if r.Ban.Factor > 0 {
		b = strconv.AppendInt(append(b, `,"factor":`...), r.Ban.Factor, 10)
	}
	if r.Ban.Most > 0 {
		b = jsontext.AppendText(append(b, `,"most":`...), window.Length(r.Ban.Most))
	}
	if r.Ban.Forget > 0 {
		b = jsontext.AppendText(append(b, `,"forget":`...), window.Length(r.Ban.Forget))
	}
	return append(b, '}')
}

// appendQuota appends one number, or how the number depends on an attribute.
func appendQuota(b []byte, q *rule.Quota) []byte {
	switch {
	case q.Attribute() == "":
		return strconv.AppendInt(b, q.Value, 10)
	case q.Of != "":
		b = jsontext.AppendText(append(b, `{"of":`...), q.Of)
		b = strconv.AppendInt(append(b, `,"most":`...), q.Most, 10)
	default:
		b = jsontext.AppendText(append(b, `{"by":`...), q.By)
		b = append(appendNumbers(append(b, `,"cases":{`...), q.Cases), '}')
	}
	if q.Else != nil {
		b = strconv.AppendInt(append(b, `,"else":`...), *q.Else, 10)
	}
	return append(b, '}')
}

// appendNumbers appends the members of numbers, sorted by name. [window.All] is
// "all".
func appendNumbers(b []byte, numbers map[string]int64) []byte {
	for i, name := range slices.Sorted(maps.Keys(numbers)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendText(b, name), ':')
		if numbers[name] == window.All {
			b = append(b, `"all"`...)
			continue
		}
		b = strconv.AppendInt(b, numbers[name], 10)
	}
	return b
}
