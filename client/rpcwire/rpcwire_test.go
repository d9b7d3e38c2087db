package rpcwire_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/client/rpcwire"
	"github.com/weirhq/weir/client/sizes"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A receipt, for requests about holds.
var taken = (&receipt.Key{1}).Seal(weir.Receipt{ID: window.HoldID{1}, At: 1, Wall: 1})

// random fills in a decision.
func random(r *rand.Rand) *weir.Decision {
	text := func() string { return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(200)) }
	wait := func() time.Duration {
		if r.IntN(4) == 0 {
			return window.Never
		}
		return time.Duration(r.Int64N(math.MaxInt64)) >> r.IntN(62) / 1000 * 1000
	}
	is := func() bool { return r.IntN(2) == 0 }
	d := &weir.Decision{
		Allowed: is(), Outcome: []string{rule.Allow, rule.Deny, "captcha"}[r.IntN(3)], Rule: text(), RetryAfter: wait(), RetryRule: text(),
		Unmatched: is(), Degraded: is(), DegradedReason: store.Reason(text()), Hold: wait(),
	}
	if is() {
		d.Receipt = taken
	}
	for range r.IntN(4) {
		u := weir.Usage{Rule: text(), Kind: rule.Kind(r.IntN(4)), Key: text(), Shadow: is(), Hits: r.Int64(), BannedUntil: window.Instant(r.Int64N(1 << 50))} //nolint:gosec // small
		u.Result = window.Result{
			Allowed: is(), Held: is(), Banned: is(), Struck: is(), Quota: window.Unlimited, Used: r.Int64(), Before: r.Int64(), Remaining: r.Int64(),
			RetryAfter: wait(), ResetAfter: wait(),
		}
		if is() {
			u.Quota, u.Remaining = r.Int64(), window.Unlimited
		}
		d.Usages = append(d.Usages, u)
	}
	for range r.IntN(3) {
		d.Verdicts, d.Triggered = append(d.Verdicts, text()), append(d.Triggered, text())
	}
	return d
}

func durationOf(d time.Duration) *durationpb.Duration {
	switch d {
	case 0:
		return nil
	case window.Never:
		return &durationpb.Duration{Seconds: -1}
	}
	return durationpb.New(d)
}

// generated returns d as a generated message.
func generated(d *weir.Decision) *weirv1.Decision {
	out := &weirv1.Decision{
		Allowed: d.Allowed, Outcome: d.Outcome, Rule: d.Rule, RetryAfter: durationOf(d.RetryAfter), RetryRule: d.RetryRule, Receipt: d.Receipt.String(),
		Verdicts: d.Verdicts, Triggered: d.Triggered, Unmatched: d.Unmatched, Degraded: d.Degraded, DegradedReason: string(d.DegradedReason), Hold: durationOf(d.Hold),
	}
	for _, u := range d.Usages {
		x := &weirv1.RuleUsage{
			Rule: u.Rule, Kind: weirv1.RuleKind(u.Kind + 1), Key: u.Key, Shadow: u.Shadow, Allowed: u.Allowed, Hits: u.Hits, Used: u.Used,
			RetryAfter: durationOf(u.RetryAfter), ResetAfter: durationOf(u.ResetAfter), Held: u.Held, Banned: u.Banned, Struck: u.Struck, Before: u.Before,
		}
		if u.Quota != window.Unlimited {
			x.Quota = proto.Int64(u.Quota)
		}
		if u.Remaining != window.Unlimited {
			x.Remaining = proto.Int64(u.Remaining)
		}
		if u.BannedUntil != 0 {
			x.BannedUntil = timestamppb.New(u.BannedUntil.Time())
		}
		out.Limits = append(out.Limits, x)
	}
	return out
}

// A decision is written as the generated code writes it, and read again as it was,
// also over one that was read before.
func TestDecisions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var again weir.Decision
	for range 2000 {
		d := random(r)
		b := rpcwire.AppendDecision(nil, d)
		var got weirv1.Decision
		if err := proto.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if want := generated(d); !proto.Equal(&got, want) {
			t.Fatalf("got  %v\nwant %v", &got, want)
		}
		if want, err := proto.Marshal(&got); err != nil || len(want) != len(b) {
			t.Fatalf("got %d bytes, want %d, as generated: %v", len(b), len(want), err)
		}
		if err := rpcwire.ReadDecision(b, &again); err != nil {
			t.Fatal(err)
		}
		kept := again
		clear(b) // nothing of it is kept
		same(t, &kept, d)
	}
}

// same compares decisions. Empty slices are the same as nil.
func same(t *testing.T, got, want *weir.Decision) {
	t.Helper()
	g, w := *got, *want
	g.Usages, w.Usages = append([]weir.Usage{}, g.Usages...), append([]weir.Usage{}, w.Usages...)
	g.Verdicts, w.Verdicts = append([]string{}, g.Verdicts...), append([]string{}, w.Verdicts...)
	g.Triggered, w.Triggered = append([]string{}, g.Triggered...), append([]string{}, w.Triggered...)
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("got  %+v\nwant %+v", g, w)
	}
}

// A request is read as the generated code reads it, whatever the bytes are. What
// the generated code refuses is refused here, too.
func FuzzRequest(f *testing.F) {
	for _, verb := range rpcwire.Verbs() {
		f.Add(rpcwire.AppendRequest(nil, verb, &weir.Request{Attributes: weir.Attributes("user", "42", "action", "post"), Hits: 3, Feedback: "solved", Receipt: taken, Final: true}))
	}
	f.Add([]byte{0x0a, 2, 0x0a, 0})
	f.Add([]byte{0x10, 0})
	f.Add([]byte("\xe8\xe9\xe9\x9800")) // a number of a field that is too large
	f.Fuzz(func(t *testing.T, b []byte) {
		var ask rpcwire.Ask
		attrs, err := ask.ReadRequest(bytes.Clone(b), weir.Take, false, nil)
		var want weirv1.Request
		if wanted := proto.Unmarshal(b, &want); (err == nil) != (wanted == nil) {
			t.Fatalf("got %v, generated code %v", err, wanted)
		}
		if err != nil {
			return
		}
		if ask.Fault != nil {
			if ask.Fault.Path == "" || ask.Fault.Problem == "" {
				t.Fatalf("got %v, want a field and a problem", ask.Fault)
			}
			return
		}
		r := ask.Request
		if len(attrs) != len(want.GetAttributes()) || len(attrs) > 64 {
			t.Fatalf("got %v, want %v", attrs, want.GetAttributes())
		}
		for _, a := range attrs {
			if want.GetAttributes()[a.Name] != a.Value {
				t.Fatalf("got %v, want %v", attrs, want.GetAttributes())
			}
		}
		if r.Hits != want.GetHits() || r.Feedback != want.GetFeedback() || r.Receipt.String() != want.GetReceipt() || r.Final != want.GetFinal() {
			t.Fatalf("got %+v, want %v", r, &want)
		}
		verb := rpcwire.Verbs()[max(want.GetVerb(), weirv1.Verb_VERB_TAKE)-1]
		if ask.Sent != verb || ask.Verb != verb && (ask.Verb != weir.Check || want.Hits == nil || want.GetHits() != 0) {
			t.Fatalf("got %v and %v, want %v", ask.Sent, ask.Verb, verb)
		}
		var again rpcwire.Ask // what was read is written as it was
		if _, err := again.ReadRequest(rpcwire.AppendRequest(nil, ask.Verb, &r), weir.Take, false, nil); err != nil || again.Fault != nil {
			t.Fatalf("got %v %v from %+v", err, again.Fault, r)
		}
		if r.Attributes = r.Attributes[:len(r.Attributes):len(r.Attributes)]; !reflect.DeepEqual(again.Request, r) && len(r.Attributes) > 0 {
			t.Fatalf("got %+v, want %+v", again.Request, r)
		}
	})
}

// Messages of several requests and answers are split as the generated code splits
// them.
func FuzzGroups(f *testing.F) {
	b, start := rpcwire.OpenDecide(rpcwire.AppendTimeout(rpcwire.AppendID(nil, 7), time.Second))
	f.Add(rpcwire.Shut(rpcwire.AppendRequest(b, weir.Check, &weir.Request{Attributes: weir.Attributes("a", "b")}), start))
	problem := &rpcwire.Problem{Code: 3, Detail: "d", Field: "f", Reason: "r", RetryAfter: time.Second}
	f.Add(rpcwire.AppendProblem(rpcwire.AppendDecideProblem(rpcwire.AppendDecideDecision(rpcwire.AppendID(nil, 7), &weir.Decision{Allowed: true}), problem), problem))
	f.Fuzz(func(t *testing.T, b []byte) {
		var asked weirv1.DecideRequest
		var g rpcwire.Group
		if proto.Unmarshal(b, &asked) == nil {
			if err := g.ReadDecide(b); err != nil || g.ID != asked.GetId() || len(g.Requests) != min(len(asked.GetRequests()), sizes.Batch+1) {
				t.Fatalf("got %v %+v, want %v", err, g, &asked)
			}
		}
		var answered weirv1.DecideResponse
		if proto.Unmarshal(b, &answered) != nil {
			return
		}
		var a rpcwire.Answers
		if err := a.ReadDecide(b); err != nil || a.ID != answered.GetId() || len(a.Answers) != len(answered.GetAnswers()) || (a.Problem == nil) != (answered.GetProblem() == nil) {
			t.Fatalf("got %v %+v, want %v", err, a, &answered)
		}
		for _, answer := range a.Answers {
			_, _ = rpcwire.ReadAnswer(answer, new(weir.Decision)) // an error at most
		}
	})
}

// Problems are read as they were written.
func TestProblems(t *testing.T) {
	t.Parallel()
	want := rpcwire.Problem{Code: 8, Detail: "too large", Field: "hits", Reason: "TOO_LARGE", RetryAfter: 3 * time.Second}
	var a rpcwire.Answers
	if err := a.ReadDecide(rpcwire.AppendProblem(rpcwire.AppendDecideProblem(nil, &want), &want)); err != nil || len(a.Answers) != 1 || *a.Problem != want {
		t.Fatalf("got %v %+v, want %+v", err, a, want)
	}
	if got, err := rpcwire.ReadAnswer(a.Answers[0], nil); err != nil || *got != want {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}

// Requests beyond a bound are faults, which name the field.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := make([]weir.Attribute, 65)
	for i := range many {
		many[i] = weir.Attribute{Name: strings.Repeat("n", i+1), Value: "v"}
	}
	long := strings.Repeat("x", 1025)
	for field, r := range map[string]weir.Request{
		"attributes":      {Attributes: many},
		"attributes.user": {Attributes: weir.Attributes("user", long)},
		"feedback":        {Feedback: long},
		"hits":            {Hits: -1},
	} {
		var ask rpcwire.Ask
		if _, err := ask.ReadRequest(rpcwire.AppendRequest(nil, weir.Refund, &r), weir.Take, false, nil); err != nil || ask.Fault == nil || ask.Fault.Path != field {
			t.Errorf("got %v %v, want a fault of %s", err, ask.Fault, field)
		}
	}
	one := func(name string) []byte { return rpcwire.AppendMap(nil, map[string]string{name: "v"}) }
	for _, tc := range []struct {
		field string
		b     []byte
	}{{"attributes", one("")}, {"attributes", one(long)}, {"attributes.ip", append(one("ip"), one("ip")...)}} {
		var ask rpcwire.Ask
		if _, err := ask.ReadRequest(tc.b, weir.Take, true, nil); err != nil || ask.Fault == nil || ask.Fault.Path != tc.field {
			t.Errorf("got %v %v, want a fault of %s", err, ask.Fault, tc.field)
		}
	}
	twice := weir.Request{Attributes: weir.Attributes("ip", "a", "", "x", "ip", "b")} // as an engine reads it
	var ask rpcwire.Ask
	if attrs, err := ask.ReadRequest(rpcwire.AppendRequest(nil, weir.Take, &twice), weir.Take, true, nil); err != nil || ask.Fault != nil || len(attrs) != 1 || attrs[0].Value != "b" {
		t.Errorf("got %v %v %v, want the last value", attrs, err, ask.Fault)
	}
}

// Reading and writing allocate nothing, if memory is used again.
func TestAllocations(t *testing.T) {
	d := random(rand.New(rand.NewPCG(3, 4)))
	d.Verdicts, d.Triggered, d.DegradedReason, d.Receipt = nil, nil, "", weir.Receipt{}
	r := weir.Request{Attributes: weir.Attributes("user", "42", "action", "post"), Hits: 3}
	var b, request []byte
	var again weir.Decision
	var ask rpcwire.Ask
	var attrs []weir.Attribute
	n := testing.AllocsPerRun(100, func() {
		b = rpcwire.AppendDecision(b[:0], d)
		if err := rpcwire.ReadDecision(b, &again); err != nil {
			t.Fatal(err)
		}
		request = rpcwire.AppendRequest(request[:0], weir.Refund, &r)
		var err error
		if attrs, err = ask.ReadRequest(request, weir.Take, false, attrs[:0]); err != nil || ask.Verb != weir.Refund {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// A time-out that is longer than a [time.Duration] is the longest one, not a negative one.
func TestLongTimeout(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]time.Duration{
		5: 5 * time.Second, -5: -5 * time.Second, 10_000_000_000: math.MaxInt64, 315_576_000_000: math.MaxInt64, -10_000_000_000: math.MinInt64,
	} {
		b, err := proto.Marshal(&weirv1.DecideRequest{Timeout: &durationpb.Duration{Seconds: seconds}})
		if err != nil {
			t.Fatal(err)
		}
		var g rpcwire.Group
		if err := g.ReadDecide(b); err != nil || g.Timeout != want {
			t.Errorf("%d s: got %v %v, want %v", seconds, g.Timeout, err, want)
		}
	}
}
