package answer

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
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

// Rule is a rule with the keys of the rules file, without those at their default.
type Rule struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	When      []string          `json:"when,omitempty"` // each an attribute, a space, and the test
	Per       []string          `json:"per,omitempty"`
	Networks  map[string]string `json:"networks,omitempty"`
	Sum       string            `json:"sum,omitempty"`
	Distinct  string            `json:"distinct,omitempty"`
	Limit     any               `json:"limit,omitempty"` // a number, or how it depends on an attribute
	Near      string            `json:"near,omitempty"`
	Trigger   int64             `json:"trigger,omitempty"`
	Window    string            `json:"window,omitempty"`
	Hold      string            `json:"hold,omitempty"`
	Unsettled string            `json:"unsettled,omitempty"`
	MaxHolds  int               `json:"max_holds,omitempty"`
	Ban       *ban              `json:"ban,omitempty"`
	Then      string            `json:"then,omitempty"`
	Rest      string            `json:"rest,omitempty"`
	Feedback  map[string]any    `json:"feedback,omitempty"`
	Mode      string            `json:"mode,omitempty"`
}

type ban struct {
	For    string `json:"for"`
	Factor int64  `json:"factor,omitempty"`
	Most   string `json:"most,omitempty"`
	Forget string `json:"forget,omitempty"`
}

type quota struct {
	Of    string         `json:"of,omitempty"`
	Most  int64          `json:"most,omitempty"`
	By    string         `json:"by,omitempty"`
	Cases map[string]any `json:"cases,omitempty"`
	Else  *int64         `json:"else,omitempty"`
}

// RuleOf returns r as an answer has it.
func RuleOf(r *rule.Rule) Rule {
	a := Rule{
		Name: r.Name, Kind: r.Kind().String(), Per: r.Per, Networks: map[string]string{}, Trigger: r.Trigger,
		Hold: length(r.Hold), MaxHolds: r.MaxHolds, Then: r.Then, Feedback: numbers(r.Feedback),
	}
	for _, c := range r.When {
		a.When = append(a.When, c.Attribute+" "+c.Test.String())
	}
	for name, n := range r.Networks {
		a.Networks[name] = Network(n)
	}
	switch r.Measure {
	case window.Sum:
		a.Sum = r.Of
	case window.Distinct:
		a.Distinct = r.Of
	}
	if q := r.Quota; q != nil {
		a.Limit = quota{q.Of, q.Most, q.By, numbers(q.Cases), q.Else}
		if q.Attribute() == "" {
			a.Limit = q.Value
		}
	}
	if r.Near > 0 {
		a.Near = fmt.Sprintf("%d%%", r.Near)
	}
	if r.Kind() != rule.KindVerdict {
		a.Window = r.Window.String()
	}
	if r.Release {
		a.Unsettled = "release"
	}
	if b := r.Ban; b.For != 0 {
		a.Ban = &ban{length(b.For), b.Factor, length(b.Most), length(b.Forget)}
	}
	if r.CountRest {
		a.Rest = "count"
	}
	if r.Mode != rule.Enforce {
		a.Mode = r.Mode.String()
	}
	return a
}

// length returns d as the rules file has it, or nothing for 0.
func length(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return window.Length(d)
}

// numbers returns the numbers of hits of names. [window.All] is "all".
func numbers(of map[string]int64) map[string]any {
	all := make(map[string]any, len(of))
	for name, n := range of {
		if all[name] = n; n == window.All {
			all[name] = "all"
		}
	}
	return all
}
