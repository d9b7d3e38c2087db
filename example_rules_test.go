package weir_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
)

// newEngine makes an engine of rules in YAML.
func newEngine(src string) *weir.Engine {
	f, err := rulefile.Parse("rules.yaml", []byte(src), nil)
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(f.Set)
	if err != nil {
		panic(err)
	}
	return e
}

// request makes a request of name=value words.
func request(words string) weir.Request {
	return weir.Request{Attributes: weir.Attributes(strings.FieldsFunc(words, func(r rune) bool { return r == ' ' || r == '=' })...)}
}

func ExampleEngine_Take() {
	e := newEngine(`
rules:
  - name: sms-minute
    per: [phone]
    limit: 1
    window: 1m
  - name: sms-day
    per: [phone]
    limit: 10
    window: day
`)
	defer e.Close()
	for range 2 {
		d, _ := e.Take(context.Background(), request("phone=555"))
		fmt.Printf("%s by %q\n", d.Outcome, d.Rule)
		for _, u := range d.Usages {
			fmt.Println(" ", u.Rule, u.Used, "of", u.Quota)
		}
	}
	// Output:
	// allow by ""
	//   sms-minute 1 of 1
	//   sms-day 1 of 10
	// deny by "sms-minute"
	//   sms-minute 1 of 1
	//   sms-day 1 of 10
}

func ExampleDecision_Limits() {
	e := newEngine(`
rules:
  - {name: sms-minute, per: [phone], limit: 1, window: 1m}
  - {name: sms-hour, per: [phone], limit: 1, window: 1h}
  - {name: sent, window: 1h}
`)
	defer e.Close()
	_, _ = e.Take(context.Background(), request("phone=555"))
	d, _ := e.Take(context.Background(), request("phone=555"))
	fmt.Println("denied by", d.Rule, "for the wait of", d.RetryRule)
	for u := range d.Limits() {
		fmt.Println(u.Rule, u.Remaining, "left")
	}
	for u := range d.Counters() {
		fmt.Println(u.Rule, u.Used)
	}
	// Output:
	// denied by sms-minute for the wait of sms-hour
	// sms-minute 0 left
	// sms-hour 0 left
	// sent 2
}

func ExampleEngine_DoAll() {
	e := newEngine("rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	defer e.Close()
	batch := []weir.Item{
		{Verb: weir.Take, Request: request("user=ann")},
		{Verb: weir.Take, Request: request("user=ann")},
		{Verb: weir.Take, Request: request("user=bob")},
	}
	e.DoAll(context.Background(), batch)
	for _, item := range batch {
		fmt.Println(item.Decision.Allowed, item.Err)
	}
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleEngine_Check() {
	e := newEngine("rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	defer e.Close()
	d, _ := e.Check(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed, d.Usages[0].Used)
	// Output: true 0
}

func ExampleEngine_Record() {
	e := newEngine("rules: [{name: tokens, per: [team], sum: tokens, limit: 1000, window: 1h}]")
	defer e.Close()
	_, _ = e.Record(context.Background(), request("team=red tokens=1000"))
	d, _ := e.Check(context.Background(), request("team=red tokens=1"))
	fmt.Println(d.Allowed)
	// Output: false
}

func ExampleEngine_Refund() {
	e := newEngine("rules: [{name: tokens, per: [team], sum: tokens, limit: 1000, window: day}]")
	defer e.Close()
	_, _ = e.Take(context.Background(), request("team=red tokens=800"))
	d, _ := e.Refund(context.Background(), request("team=red tokens=300"))
	fmt.Println(d.Usages[0].Used)
	// Output: 500
}

func ExampleEngine_Usage() {
	e := newEngine("rules: [{name: views, per: [page], window: {cells: 24h, n: 1440}}]")
	defer e.Close()
	_, _ = e.Take(context.Background(), request("page=/home"))
	u, _ := e.Usage(context.Background(), "views", weir.Attributes("page", "/home"))
	fmt.Println(u.Key, u.Used)
	// Output: /home 1
}

func ExampleEngine_Forget() {
	e := newEngine("rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	defer e.Close()
	_, _ = e.Take(context.Background(), request("user=ann"))
	_ = e.Forget(context.Background(), "posts", weir.Attributes("user", "ann"))
	d, _ := e.Check(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed)
	// Output: true
}

func ExampleEngine_Explain() {
	e := newEngine(`
rules:
  - {name: likes, when: {action: like}, per: [user], limit: 1, window: 1s}
  - {name: posts, when: {action: post}, per: [user], limit: 5, window: 1h}
`)
	defer e.Close()
	x, _ := e.Explain(context.Background(), request("action=post user=ann"))
	for _, r := range x.Rules {
		fmt.Println(r.Rule, r.Matched, r.Reasons)
	}
	// Output:
	// likes false [action is "post", want one of [like]]
	// posts true []
}

func ExampleEngine_SetRules() {
	e := newEngine("rules: [{name: posts, per: [user], limit: 1, window: 1h}]")
	defer e.Close()
	_, _ = e.Take(context.Background(), request("user=ann"))
	f, _ := rulefile.Parse("rules.yaml", []byte("rules: [{name: posts, per: [user], limit: 2, window: 1h}]"), nil)
	_ = e.SetRules(f.Set)
	d, _ := e.Take(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed, d.Usages[0].Used, "of", d.Usages[0].Quota)
	// Output: true 2 of 2
}

// A trigger reports; it never denies.
func ExampleEngine_Take_trigger() {
	e := newEngine("rules: [{name: critical-hit, per: [user], sum: score, trigger: 1000, window: 3s}]")
	defer e.Close()
	for _, score := range []string{"600", "400"} {
		d, _ := e.Take(context.Background(), request("user=ann score="+score))
		fmt.Println(d.Allowed, d.Triggered)
	}
	// Output:
	// true []
	// true [critical-hit]
}

// Ten strangers a day, here two: one who was met already is free.
func ExampleEngine_Take_distinct() {
	e := newEngine(`rules: [{name: strangers, when: {friend: "false"}, per: [user], distinct: peer, limit: 2, window: day}]`)
	defer e.Close()
	for _, peer := range []string{"bob", "cat", "dan", "cat"} {
		d, _ := e.Take(context.Background(), request("user=ann friend=false peer="+peer))
		fmt.Println(peer, d.Allowed)
	}
	// Output:
	// bob true
	// cat true
	// dan false
	// cat true
}

// Free up to a count, then one at a time.
func ExampleEngine_Take_after() {
	e := newEngine("rules: [{name: slow-down, per: [ip], after: {count: 3, window: day}, limit: 1, window: 1h}]")
	defer e.Close()
	for range 4 {
		d, _ := e.Take(context.Background(), request("ip=192.0.2.1"))
		fmt.Println(d.Allowed)
	}
	// Output:
	// true
	// true
	// true
	// false
}

// An outcome of the file's own, and an allow list before the limit.
func ExampleEngine_Take_outcome() {
	e := newEngine(`
lists:
  staff: {values: [ann]}
outcomes:
  captcha: {status: 429, body: {need_captcha: true}}
rules:
  - {name: staff, when: {user: {in: staff}}, then: allow}
  - {name: comments, per: [user], limit: 0, window: 1m, then: captcha}
`)
	defer e.Close()
	for _, user := range []string{"ann", "bob"} {
		d, _ := e.Take(context.Background(), request("user="+user))
		fmt.Println(user, d.Outcome, d.Rule)
	}
	// Output:
	// ann allow staff
	// bob captcha comments
}

// A shadow rule shows what it would do.
func ExampleEngine_Take_shadow() {
	e := newEngine("rules: [{name: strict, per: [user], limit: 1, window: 1h, mode: shadow}]")
	defer e.Close()
	for range 2 {
		d, _ := e.Take(context.Background(), request("user=ann"))
		fmt.Println(d.Allowed, d.Usages[0].Allowed)
	}
	// Output:
	// true true
	// true false
}

// The quota may come from an attribute.
func ExampleEngine_Take_plans() {
	e := newEngine("rules: [{name: asks, per: [user], limit: {by: plan, pro: 1000, else: 1}, window: day}]")
	defer e.Close()
	for _, plan := range []string{"pro", "free"} {
		d, _ := e.Take(context.Background(), request("user=ann plan="+plan))
		fmt.Println(plan, d.Usages[0].Quota)
	}
	// Output:
	// pro 1000
	// free 1
}

// Every condition has to hold; a list is any of its values.
func ExampleEngine_Take_matchers() {
	e := newEngine(`
lists:
  offices: {values: [192.0.2.0/24]}
rules:
  - name: big-uploads
    when:
      action: [upload, import]
      size: {above: 1000}
      path: {prefix: /files/}
      ip: {not: {in: offices}}
    per: [ip]
    limit: 1
    window: 1h
`)
	defer e.Close()
	for _, words := range []string{
		"action=upload size=5000 path=/files/a ip=198.51.100.7",
		"action=upload size=500 path=/files/a ip=198.51.100.7",
		"action=upload size=5000 path=/files/a ip=192.0.2.7",
	} {
		d, _ := e.Take(context.Background(), request(words))
		fmt.Println("matches:", len(d.Usages) == 1)
	}
	// Output:
	// matches: true
	// matches: false
	// matches: false
}

// A sum weighs each request by an attribute; money is counted in cents.
func ExampleEngine_Take_sum() {
	e := newEngine("rules: [{name: spend, per: [team], sum: cents, limit: 500, window: day}]")
	defer e.Close()
	for _, cents := range []string{"499", "2", "1", "0.5"} {
		d, err := e.Take(context.Background(), request("team=red cents="+cents))
		fmt.Println(cents, d.Allowed, err != nil)
	}
	// Output:
	// 499 true false
	// 2 false false
	// 1 true false
	// 0.5 false true
}

// With count_denied those who keep trying stay denied.
func ExampleEngine_Take_countDenied() {
	e := newEngine("rules: [{name: logins, per: [user], limit: 1, window: day, count_denied: true}]")
	defer e.Close()
	for range 3 {
		d, _ := e.Take(context.Background(), request("user=ann"))
		fmt.Println(d.Allowed, d.Usages[0].Used)
	}
	// Output:
	// true 1
	// false 2
	// false 3
}

// Feedback gives back what a rule states for what has happened since, here two
// failed logins for one that succeeds.
func ExampleEngine_Refund_feedback() {
	e := newEngine("rules: [{name: failed-logins, per: [user], limit: 3, window: day, feedback: {succeeded: 2}}]")
	defer e.Close()
	for range 3 {
		_, _ = e.Take(context.Background(), request("user=ann"))
	}
	d, _ := e.Refund(context.Background(), weir.Request{
		Attributes: weir.Attributes("user", "ann"),
		Feedback:   "succeeded",
	})
	fmt.Println(d.Usages[0].Used)
	// Output:
	// 1
}

// With rest: count the rules behind a verdict go on counting, so that staff may
// do more than others and still shows up in their numbers.
func ExampleEngine_Take_rest() {
	e := newEngine(`
rules:
  - {name: staff, when: {user: ann}, then: allow, rest: count}
  - {name: posts, per: [user], limit: 1, window: day}
  - {name: posts-in-all, window: day}
`)
	defer e.Close()
	for _, user := range []string{"bob", "bob", "ann", "ann"} {
		d, _ := e.Take(context.Background(), request("user="+user))
		fmt.Println(user, d.Allowed, d.Verdicts, d.Usages[1].Used)
	}
	// Output:
	// bob true [] 1
	// bob false [] 2
	// ann true [staff] 3
	// ann true [staff] 4
}

// The first rule over its quota gives the outcome.
func ExampleEngine_Take_order() {
	e := newEngine(`
outcomes:
  captcha: {status: 429}
rules:
  - {name: soft, per: [user], limit: 1, window: day, then: captcha}
  - {name: hard, per: [user], limit: 1, window: day}
`)
	defer e.Close()
	for range 2 {
		d, _ := e.Take(context.Background(), request("user=ann"))
		fmt.Println(d.Outcome)
	}
	// Output:
	// allow
	// captcha
}

// A rule says what happens when its keys cannot be counted, here because its
// memory is full.
func ExampleEngine_Take_onOutage() {
	e := newEngine("rules: [{name: posts, per: [user], limit: 5, window: day, max_keys: 1, on_outage: allow}]")
	defer e.Close()
	for _, user := range []string{"ann", "bob"} {
		d, _ := e.Take(context.Background(), request("user="+user))
		fmt.Println(user, d.Allowed, d.Degraded)
	}
	// Output:
	// ann true false
	// bob true true
}
