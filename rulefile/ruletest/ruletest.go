// Package ruletest runs test files: requests at stated times against a rules file,
// and the decisions that its author expects. Time is virtual, so a case that covers
// a month takes no longer than its requests.
//
//	func TestRules(t *testing.T) {
//		ruletest.Run(t, "posts_test.yaml")
//	}
//
// The command weir test runs the same files. docs/guides/testing-rules.md describes the format.
package ruletest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/rulefile/internal/testfile"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Case is the result of one case.
type Case struct {
	Name     string
	Failures []Failure
	Requests int           // number of requests
	Covers   time.Duration // virtual time from the start of the case to its last request
}

// Test runs the cases of tests, which [rulefile.ParseTests] has read, each with its own
// counters, and calls done after each case. It returns an error if ctx is done.
func Test(ctx context.Context, tests *testfile.File, done func(*Case)) error {
	for i := range tests.Cases {
		c, err := run(ctx, tests, &tests.Cases[i])
		if err != nil {
			return err
		}
		done(c)
	}
	return nil
}

// load reads the named test file, and the rules file that it names.
func load(name string) (*testfile.File, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("test file: %w", err)
	}
	return rulefile.ParseTests(name, src, rulefile.Load)
}

// subtest is the part of [*testing.T] that [Run] uses.
type subtest[Sub any] interface {
	Helper()
	Context() context.Context
	Run(name string, f func(Sub)) bool
	Errorf(format string, args ...any)
}

// Run runs the test files called names, each case as a subtest. t is a
// [*testing.T].
func Run[Sub subtest[Sub]](t Sub, names ...string) {
	t.Helper()
	for _, name := range names {
		tests, err := load(name)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for i := range tests.Cases {
			t.Run(tests.Cases[i].Name, func(t Sub) {
				t.Helper()
				c, err := run(t.Context(), tests, &tests.Cases[i])
				if err != nil {
					t.Errorf("%v", err)
					return
				}
				for _, f := range c.Failures {
					t.Errorf("%v", f)
				}
			})
		}
	}
}

// runner is a running case.
type runner struct {
	tests  *testfile.File
	test   *testfile.Case
	engine *weir.Engine
	now    time.Time
	result Case

	receipts map[string]weir.Receipt
}

// run runs one case. It returns an error only if ctx is done.
func run(ctx context.Context, tests *testfile.File, test *testfile.Case) (*Case, error) {
	r := runner{tests: tests, test: test, result: Case{Name: test.Name}, receipts: map[string]weir.Receipt{}}
	s := memstore.New(memstore.WithClock(func() window.Instant { return window.Instant(r.now.UnixMicro()) }))
	engine, err := weir.NewEngine(tests.Rules, weir.WithStore(s))
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	r.engine = engine
	for i := range test.Steps {
		r.now = test.Steps[i].At
		r.step(ctx, i)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	r.result.Covers = r.now.Sub(test.Start)
	return &r.result, nil
}

var verbs = map[string]store.Verb{
	"take": store.Take, "check": store.Check, "record": store.Record, "refund": store.Refund,
	"settle": store.Settle, "cancel": store.Cancel, "renew": store.Renew,
}

// step runs the requests of step i. It stops at the first that fails.
func (r *runner) step(ctx context.Context, i int) {
	s := &r.test.Steps[i]
	if s.Verb == "" {
		return
	}
	request := weir.Request{Attributes: weir.Attributes(s.Attributes...), Hits: s.Hits, Feedback: s.Feedback}
	if verbs[s.Verb].NeedsReceipt() {
		request.Receipt = r.receipts[s.Receipt]
	}
	admitted, denied := 0, 0
	var d weir.Decision
	for n := range s.Repeat {
		if n > 0 {
			r.now = r.now.Add(s.Every)
		}
		r.result.Requests++
		var err error
		if s.Verb == "forget" {
			err = r.engine.Forget(ctx, s.Rule, request.Attributes)
		} else {
			err = r.engine.Do(ctx, verbs[s.Verb], &request, &d)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil && d.Allowed {
			admitted++
		} else {
			denied++
		}
		if s.Verb == "take" && s.Receipt != "" && err == nil {
			r.receipts[s.Receipt] = d.Receipt
		}
		if f := r.compare(s, answer{&d, err}); len(f) > 0 {
			r.fail(i, n, f, answer{&d, err})
			return
		}
	}
	if f := counts(s, admitted, denied); len(f) > 0 {
		r.fail(i, -1, f, answer{})
	}
}

// fail adds the failure of repetition n of step i, or of all its repetitions if n
// is negative.
func (r *runner) fail(i, n int, fields []difference, a answer) {
	s := &r.test.Steps[i]
	f := Failure{
		Summary: fmt.Sprintf("step %d, %s: got %s, want %s", i+1, fields[0].key, fields[0].got, fields[0].want),
		test:    r.test.Name, step: i + 1, differ: fields, request: s.Verb, at: r.now, after: r.now.Sub(r.test.Start),
	}
	for n := 0; n+1 < len(s.Attributes); n += 2 {
		f.request += " " + s.Attributes[n] + "=" + s.Attributes[n+1]
	}
	if s.Repeat > 1 && n >= 0 {
		f.request += fmt.Sprintf(", the %s of %d", ordinal(n+1), s.Repeat)
	}
	if n >= 0 {
		f.answer = a.String()
	}
	r.result.Failures = append(r.result.Failures, f)
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
