package weir_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// newEngine makes an engine of rules.
func newEngine(rules ...rule.Rule) *weir.Engine { return engineBy(rule.New(rules, nil)) }

func engineBy(set *rule.Set, err error) *weir.Engine {
	if err != nil {
		panic(err)
	}
	e, err := weir.NewEngine(set)
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
	e := newEngine(
		rule.Rule{Name: "sms-minute", Per: []string{"phone"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)},
		rule.Rule{Name: "sms-day", Per: []string{"phone"}, Quota: &rule.Quota{Value: 10}, Window: window.Calendar(window.Day, nil)},
	)
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

func ExampleUsage() {
	e := newEngine(
		rule.Rule{Name: "sms-minute", Per: []string{"phone"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Minute)},
		rule.Rule{Name: "sms-hour", Per: []string{"phone"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
		rule.Rule{Name: "sent", Window: window.Sliding(time.Hour)},
	)
	defer e.Close()
	_, _ = e.Take(context.Background(), request("phone=555"))
	d, _ := e.Take(context.Background(), request("phone=555"))
	fmt.Println("denied by", d.Rule, "for the wait of", d.RetryRule)
	for _, u := range d.Usages {
		switch u.Kind {
		case rule.KindLimit:
			fmt.Println(u.Rule, u.Remaining, "left")
		case rule.KindCounter:
			fmt.Println(u.Rule, u.Used)
		}
	}
	// Output:
	// denied by sms-minute for the wait of sms-hour
	// sms-minute 0 left
	// sms-hour 0 left
	// sent 2
}

func ExampleEngine_DoAll() {
	e := newEngine(rule.Rule{
		Name: "posts", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour),
	})
	defer e.Close()
	batch := []weir.Item{
		{Verb: store.Take, Request: request("user=ann")},
		{Verb: store.Take, Request: request("user=ann")},
		{Verb: store.Take, Request: request("user=bob")},
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
	e := newEngine(rule.Rule{
		Name: "posts", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour),
	})
	defer e.Close()
	d, _ := e.Check(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed, d.Usages[0].Used)
	// Output: true 0
}

func ExampleEngine_Record() {
	e := newEngine(rule.Rule{
		Name: "tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens",
		Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour),
	})
	defer e.Close()
	_, _ = e.Record(context.Background(), request("team=red tokens=1000"))
	d, _ := e.Check(context.Background(), request("team=red tokens=1"))
	fmt.Println(d.Allowed)
	// Output: false
}

func ExampleEngine_Refund() {
	e := newEngine(rule.Rule{
		Name: "tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens",
		Quota: &rule.Quota{Value: 1000}, Window: window.Calendar(window.Day, nil),
	})
	defer e.Close()
	_, _ = e.Take(context.Background(), request("team=red tokens=800"))
	d, _ := e.Refund(context.Background(), request("team=red tokens=300"))
	fmt.Println(d.Usages[0].Used)
	// Output: 500
}

func ExampleEngine_Usage() {
	e := newEngine(rule.Rule{
		Name: "views", Per: []string{"page"},
		Window: window.Cells(24*time.Hour, 1440),
	})
	defer e.Close()
	_, _ = e.Take(context.Background(), request("page=/home"))
	u, _ := e.Usage(context.Background(), "views", weir.Attributes("page", "/home"))
	fmt.Println(u.Key, u.Used)
	// Output: /home 1
}

func ExampleEngine_Forget() {
	e := newEngine(rule.Rule{
		Name: "posts", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour),
	})
	defer e.Close()
	_, _ = e.Take(context.Background(), request("user=ann"))
	_ = e.Forget(context.Background(), "posts", weir.Attributes("user", "ann"))
	d, _ := e.Check(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed)
	// Output: true
}

func ExampleEngine_Explain() {
	e := newEngine(
		rule.Rule{Name: "likes", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("like")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Second)},
		rule.Rule{Name: "posts", When: []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}}, Per: []string{"user"}, Quota: &rule.Quota{Value: 5}, Window: window.Sliding(time.Hour)},
	)
	defer e.Close()
	_, why, _ := e.Explain(context.Background(), request("action=post user=ann"))
	for _, r := range why {
		fmt.Println(r.Rule, r.Matched, r.Reasons)
	}
	// Output:
	// likes false [action is "post", want like]
	// posts true []
}

func ExampleEngine_SetRules() {
	e := newEngine(rule.Rule{
		Name: "posts", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour),
	})
	defer e.Close()
	_, _ = e.Take(context.Background(), request("user=ann"))
	set, _ := rule.New([]rule.Rule{{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 2}, Window: window.Sliding(time.Hour)}}, nil)
	_ = e.SetRules(set)
	d, _ := e.Take(context.Background(), request("user=ann"))
	fmt.Println(d.Allowed, d.Usages[0].Used, "of", d.Usages[0].Quota)
	// Output: true 2 of 2
}

// A trigger reports; it never denies.
func ExampleEngine_Take_trigger() {
	e := newEngine(rule.Rule{
		Name: "critical-hit", Per: []string{"user"}, Measure: window.Sum, Of: "score",
		Trigger: 1000, Window: window.Sliding(3 * time.Second),
	})
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
	e := newEngine(rule.Rule{
		Name: "strangers", When: []rule.Condition{{Attribute: "friend", Test: rule.Equal("false")}}, Per: []string{"user"}, Measure: window.Distinct, Of: "peer",
		Quota: &rule.Quota{Value: 2}, Window: window.Calendar(window.Day, nil),
	})
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
	e := newEngine(rule.Rule{
		Name: "slow-down", Per: []string{"ip"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour), After: window.After{Count: 3, Window: window.Calendar(window.Day, nil)},
	})
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

// An outcome of its own, and an allow list before the limit.
func ExampleEngine_Take_outcome() {
	staff, _ := rule.In("staff", []string{"ann"})
	e := engineBy(rule.New([]rule.Rule{
		{Name: "staff", When: []rule.Condition{{Attribute: "user", Test: staff}}, Then: rule.Allow},
		{Name: "comments", Per: []string{"user"}, Quota: &rule.Quota{Value: 0}, Window: window.Sliding(time.Minute), Then: "captcha"},
	}, map[string]rule.Outcome{
		"captcha": {Status: http.StatusTooManyRequests, Body: []byte(`{"need_captcha": true}`)},
	}))
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
	e := newEngine(rule.Rule{
		Name: "strict", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour), Mode: rule.Shadow,
	})
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
	others := int64(1)
	e := newEngine(rule.Rule{
		Name: "asks", Per: []string{"user"},
		Quota: &rule.Quota{By: "plan", Cases: map[string]int64{"pro": 1000}, Else: &others}, Window: window.Calendar(window.Day, nil),
	})
	defer e.Close()
	for _, plan := range []string{"pro", "free"} {
		d, _ := e.Take(context.Background(), request("user=ann plan="+plan))
		fmt.Println(plan, d.Usages[0].Quota)
	}
	// Output:
	// pro 1000
	// free 1
}

// The quota may be the value of an attribute, with which the caller is trusted.
func ExampleEngine_Take_ownLimit() {
	others := int64(100)
	e := newEngine(rule.Rule{
		Name: "calls", Per: []string{"customer"},
		Quota: &rule.Quota{Of: "customer_limit", Most: 100_000, Else: &others}, Window: window.Calendar(window.Month, nil),
	})
	defer e.Close()
	for _, words := range []string{"customer=acme customer_limit=5000", "customer=acme customer_limit=8000", "customer=acme", "customer=acme customer_limit=many"} {
		d, err := e.Take(context.Background(), request(words))
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(d.Usages[0].Used, "of", d.Usages[0].Quota)
	}
	// Output:
	// 1 of 5000
	// 2 of 8000
	// 3 of 100
	// weir: attributes.customer_limit: rule calls: attribute "customer_limit" is "many", want a whole number from 0 on
}

// Every condition has to hold; a list is any of its values.
func ExampleEngine_Take_matchers() {
	offices, _ := rule.Address("192.0.2.0/24")
	above := 1000.0
	e := newEngine(rule.Rule{
		Name: "big-uploads",
		When: []rule.Condition{
			{Attribute: "action", Test: rule.Equal("upload", "import")},
			{Attribute: "size", Test: rule.Within(rule.Range{Above: &above})},
			{Attribute: "path", Test: rule.Prefix("/files/")},
			{Attribute: "ip", Test: rule.Not(offices)},
		},
		Per: []string{"ip"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour),
	})
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
	e := newEngine(rule.Rule{
		Name: "spend", Per: []string{"team"}, Measure: window.Sum, Of: "cents",
		Quota: &rule.Quota{Value: 500}, Window: window.Calendar(window.Day, nil),
	})
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
	e := newEngine(rule.Rule{
		Name: "logins", Per: []string{"user"},
		Quota: &rule.Quota{Value: 1}, Window: window.Calendar(window.Day, nil), CountDenied: true,
	})
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
	e := newEngine(rule.Rule{
		Name: "failed-logins", Per: []string{"user"},
		Quota: &rule.Quota{Value: 3}, Window: window.Calendar(window.Day, nil), Feedback: map[string]int64{"succeeded": 2},
	})
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

// With rest: count the rules after a verdict go on counting, so that staff may
// do more than others and still shows up in their numbers.
func ExampleEngine_Take_rest() {
	e := newEngine(
		rule.Rule{Name: "staff", When: []rule.Condition{{Attribute: "user", Test: rule.Equal("ann")}}, Then: rule.Allow, CountRest: true},
		rule.Rule{Name: "posts", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Calendar(window.Day, nil)},
		rule.Rule{Name: "posts-in-all", Window: window.Calendar(window.Day, nil)},
	)
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
	e := engineBy(rule.New([]rule.Rule{
		{Name: "soft", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Calendar(window.Day, nil), Then: "captcha"},
		{Name: "hard", Per: []string{"user"}, Quota: &rule.Quota{Value: 1}, Window: window.Calendar(window.Day, nil)},
	}, map[string]rule.Outcome{"captcha": {Status: http.StatusTooManyRequests}}))
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
	e := newEngine(rule.Rule{
		Name: "posts", Per: []string{"user"},
		Quota: &rule.Quota{Value: 5}, Window: window.Calendar(window.Day, nil), OnOutage: rule.OutageAllow, MaxKeys: 1,
	})
	defer e.Close()
	for _, user := range []string{"ann", "bob"} {
		d, _ := e.Take(context.Background(), request("user="+user))
		fmt.Println(user, d.Allowed, d.Degraded)
	}
	// Output:
	// ann true false
	// bob true true
}
