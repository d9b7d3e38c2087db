package peer

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Layouts returns the names of the ways in which conditions are spread over rules.
func Layouts() []string { return []string{"own", "shared", "spread"} }

// RuleCounts returns the numbers of rules.
func RuleCounts() []int { return []int{10, 1000, 10_000} }

// Matching returns a peer for each number of rules and each layout, in this order. It
// finds the two rules that match one of many requests.
func Matching() (peers []Peer) {
	for _, n := range RuleCounts() {
		for _, layout := range Layouts() {
			peers = append(peers, Peer{Name: fmt.Sprint(layout, " ", n), New: func(Config) (Limiter, error) { return matcher(layout, n) }})
		}
	}
	return peers
}

func matcher(layout string, n int) (Limiter, error) {
	four := []string{"agent", "host", "path", "referer"}
	value := func(i int) string { return fmt.Sprint("/items/", i) }
	attribute := func(i int) string {
		if layout == "spread" {
			return four[i%4]
		}
		return "path"
	}
	rules := make([]rule.Rule, n)
	for i := range rules {
		when := []rule.Condition{{Attribute: attribute(i), Test: rule.Equal(value(i))}}
		if layout == "shared" {
			when = append(when, rule.Condition{Attribute: "action", Test: rule.Equal("post")})
		}
		rules[i] = rule.Rule{Name: fmt.Sprint("r", i), When: when, Per: []string{"user"}, Window: window.Sliding(time.Hour)}
	}
	rules[n-1] = rule.Rule{Name: "all", Per: []string{"user"}, Window: window.Sliding(time.Hour)}
	set, err := rule.New(rules, nil)
	if err != nil {
		return Limiter{}, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	requests := make([][]string, 1024)
	for k := range requests {
		i := random.IntN(n - 1)
		values := map[string]string{"action": "post", "user": "42", "path": "-", "host": "-", "agent": "-", "referer": "-"}
		values[attribute(i)] = value(i)
		requests[k] = make([]string, len(set.Attributes()))
		for at, name := range set.Attributes() {
			requests[k][at] = values[name]
		}
	}
	found, k := make([]int, 0, 8), 0
	return Limiter{Allow: func(string) bool {
		k++
		found = set.Compiled().Match(requests[k%len(requests)], found[:0])
		return len(found) == 2
	}}, nil
}

// WindowKinds returns the names of the windows, and WindowCases what is measured of
// each.
func WindowKinds() []string {
	return []string{"sliding", "cells", "fixed", "calendar", "bucket", "with `after`"}
}

// WindowCases returns the names of the measurements of each window.
func WindowCases() []string {
	return []string{"quota 5", "quota 100", "quota 10,000", "denied, quota 100"}
}

// WindowPeers returns a peer for each window and each measurement, in this order.
func WindowPeers() (peers []Peer) {
	quotas := []int64{5, 100, 10_000, 100}
	for k, kind := range WindowKinds() {
		for i, name := range WindowCases() {
			peers = append(peers, Peer{Name: kind + ", " + name, New: func(Config) (Limiter, error) {
				return arithmetic(windowLimit(k, quotas[i]), i == len(quotas)-1)
			}})
		}
	}
	return peers
}

// windowLimit returns the limit of kind k of WindowKinds.
func windowLimit(k int, quota int64) window.Limit {
	w := []window.Window{
		window.Sliding(time.Minute), window.Cells(time.Minute, 0), window.Fixed(time.Minute), window.Calendar(window.Day, nil),
		window.Bucket(time.Minute, 0), window.Sliding(time.Minute),
	}[k]
	l := window.Limit{Quota: quota, Window: w}
	if k == len(WindowKinds())-1 {
		l.After = window.After{Count: 3, Window: window.Calendar(window.Hour, nil)}
	}
	return l
}

// arithmetic takes hits of one state, a little over the quota, or at an instant at
// which all are denied.
func arithmetic(l window.Limit, denied bool) (Limiter, error) {
	c, err := window.Compile(l)
	if err != nil {
		return Limiter{}, err
	}
	var s window.State
	now := window.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	step := window.Instant(50e6 / l.Quota)
	if denied {
		s, _ = c.Record(s, now, window.Hits{N: l.Quota + 10})
		step = 0
	}
	return Limiter{Allow: func(string) bool {
		var r window.Result
		now += step
		s, r = c.Take(s, now, window.Hits{N: 1})
		return r.Allowed
	}}, nil
}
